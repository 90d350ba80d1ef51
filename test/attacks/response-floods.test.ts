/** A receiver sends endless data in places where HTTP parsers do not count bytes: Posthorn stops reading after a few kilobytes. */
import { expect, it } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS } from '../../src/deliver/index.ts';
import { anEndpoint, attempt } from '../support/attempts.ts';
import { flood } from '../support/behaviours.ts';
import { certificates } from '../support/certificates.ts';
import { startReceiver } from '../support/receiver.ts';

const REQUESTS = 20;
const JUNK = Buffer.alloc(64 * 1024, 'x');
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
/** The cap and what the buffers of both sockets hold. */
const BYTES_PER_REQUEST = 8 * 1024 * 1024;

it.for([
  ['the reason phrase', 'HTTP/1.1 200 ', JUNK, 'response_headers_too_large', null],
  ['a chunk extension', `${CHUNKED}1;`, JUNK, null, 200],
  ['many chunk extensions', CHUNKED, `1;${'x'.repeat(16_000)}\r\na\r\n`, null, 200],
] as const)(
  'an endless response in %s is cut off at the cap (DLV-5)',
  async ([, head, more, errorClass, status]) => {
    for (const tls of [undefined, certificates.valid]) {
      const receiver = await startReceiver(tls === undefined ? {} : { tls });
      const deliverer = createDeliverer({
        egress: DEVELOPMENT_EGRESS,
        userAgent: 'Posthorn/test',
        publicUrl: 'https://posthorn.test',
        ca: certificates.authority,
      });
      let written = 0;
      receiver.answer((request, wire) => {
        void wire.closed.then(() => {
          written += wire.socket.bytesWritten;
        });
        return flood(head, more)(request, wire);
      });
      const endpoint = anEndpoint(receiver.url, { timeoutMs: 10_000 });
      const outcomes = await Promise.all(
        Array.from({ length: REQUESTS }, () => attempt(deliverer, endpoint)),
      );
      for (const outcome of outcomes) {
        expect(outcome.error?.class ?? null).toBe(errorClass);
        expect(outcome.statusCode).toBe(status);
        expect(outcome.durationMs).toBeLessThan(9_000);
      }
      await receiver.waitForNoSockets();
      expect(written).toBeLessThan(REQUESTS * BYTES_PER_REQUEST);
      await deliverer.close();
      await receiver.close();
    }
  },
);
