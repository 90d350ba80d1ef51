/** Reading the body as it came, up to a limit, whatever the framework hands over. */
import { type Bytes, concat } from './bytes.ts';
import { VerificationError } from './errors.ts';
import type { VerifierOptions } from './verifier.ts';

export interface AdapterOptions extends VerifierOptions {
  /** Default: 4 MiB. */
  readonly maxBodyBytes?: number;
  /** Told about every request that was refused, for your log. */
  readonly onRejected?: (error: VerificationError) => void;
}

export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

export async function readAll(chunks: AsyncIterable<Uint8Array | string>, maxBytes: number): Promise<Bytes> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    if (typeof chunk === 'string')
      throw new VerificationError('body_already_parsed', 'Do not set an encoding on the request.');
    length += chunk.length;
    if (length > maxBytes) throw new VerificationError('body_too_large', `Allowed: ${maxBytes} bytes.`);
    parts.push(chunk);
  }
  return concat(...parts);
}

/** Not by `for await`: a ReadableStream is no async iterable everywhere. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** The body of a web `Request`. */
export async function readRequest(request: Request, maxBytes: number): Promise<Bytes> {
  if (request.bodyUsed)
    throw new VerificationError('body_already_parsed', 'Something has read request.body before.');
  return request.body === null ? new Uint8Array(0) : readAll(chunksOf(request.body), maxBytes);
}

/** The answer to a request that was refused. */
export const rejection = (error: VerificationError): string => JSON.stringify({ error: error.reason });
