/**
 * A real SMTP server on loopback for tests. It records messages, and can refuse them.
 *
 *   const mail = await startMailServer();
 *   const [message] = await mail.waitFor(1);
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { eventually } from './eventually.ts';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface MailServer {
  readonly url: string;
  readonly messages: readonly ReceivedMail[];
  /** Refuses further messages with this code. Null: takes them. */
  refuseWith(code: number | null): void;
  /** Does not answer messages to this address until the returned function is called. */
  hold(address: string): () => void;
  /** Resolves with all messages when there are this many to the address. */
  waitFor(count: number, address?: string): Promise<ReceivedMail[]>;
  close(): Promise<void>;
}

export async function startMailServer(): Promise<MailServer> {
  const messages: ReceivedMail[] = [];
  let refusal: number | null = null;
  const held = new Map<string, Promise<void>>();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', async () => {
        await held.get(session.envelope.rcptTo[0]?.address ?? '');
        if (refusal !== null)
          return done(Object.assign(new Error('mailbox at mx1.internal.example'), { responseCode: refusal }));
        const { mailFrom, rcptTo } = session.envelope;
        messages.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          ...parse(Buffer.concat(chunks).toString('utf8')),
        });
        done();
      });
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    messages,
    refuseWith: (code) => {
      refusal = code;
    },
    hold: (address) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(address, promise);
      return () => {
        held.delete(address);
        resolve();
      };
    },
    waitFor: (count, address) =>
      eventually(`${count} messages arrive`, () => {
        const found = messages.filter(({ to }) => address === undefined || to.includes(address));
        return found.length >= count ? found : undefined;
      }),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function parse(message: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const [head = '', ...body] = message.split('\r\n\r\n');
  const headers: Record<string, string> = {};
  for (const line of head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const raw = body.join('\r\n\r\n');
  return { headers, text: decode(raw, headers['content-transfer-encoding'] ?? '') };
}

function decode(body: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8');
  if (encoding !== 'quoted-printable') return body.replaceAll('\r\n', '\n');
  const bytes = body
    .replaceAll(/=\r\n/g, '')
    .replaceAll('\r\n', '\n')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
