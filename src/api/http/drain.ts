import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

/** A client that announces or sends more than this is cut off. */
const MAX_DRAINED_BYTES = 128 * 1024 * 1024;

/**
 * Returns the answer to a body that is too large, as a stream that ends once the client has sent the body, which is
 * discarded. The connection is closed when the answer ends. Closing it while the client still sends would reset it, and
 * clients would report a broken pipe instead of the answer. The time limit of requests applies.
 */
export function answerWhileDraining(request: IncomingMessage, answer: Buffer): Buffer | Readable {
  if (Number(request.headers['content-length'] ?? 0) > MAX_DRAINED_BYTES) return answer;
  return Readable.from(
    (async function* () {
      yield answer;
      await drain(request);
    })(),
    { objectMode: false },
  );
}

/** Never rejects: it ends early if the client closes the connection or sends too much. */
function drain(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_DRAINED_BYTES) resolve();
    });
    for (const event of ['end', 'error', 'close']) request.once(event, () => resolve());
    if (request.complete || request.destroyed) resolve();
    request.resume();
  });
}
