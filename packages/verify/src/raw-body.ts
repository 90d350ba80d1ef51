/** Reads the raw body, up to a limit. */
import { type Bytes, concat } from './bytes.ts';
import { VerificationError } from './errors.ts';
import type { VerifierOptions } from './verifier.ts';

export interface AdapterOptions extends VerifierOptions {
  /** Default: 4 MiB. */
  readonly maxBodyBytes?: number;
  /** Called for every rejected request, for your log. */
  readonly onRejected?: (error: VerificationError) => void;
}

export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Joins the chunks. Throws `VerificationError` if they are larger than the limit. */
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

/** Iterates over a stream. Not every runtime supports `for await` on a ReadableStream. */
async function* iterateChunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
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

/** Reads the body of a web `Request`. */
export async function readRequest(request: Request, maxBytes: number): Promise<Bytes> {
  if (request.bodyUsed)
    throw new VerificationError('body_already_parsed', 'Something read request.body before.');
  return request.body === null ? new Uint8Array(0) : readAll(iterateChunks(request.body), maxBytes);
}

/** The response body for a rejected request. */
export const buildRejectionBody = (error: VerificationError): string =>
  JSON.stringify({ error: error.reason });

/** The response for a rejected request. */
export const buildRejectionResponse = (error: VerificationError): Response =>
  new Response(buildRejectionBody(error), {
    status: error.status,
    headers: { 'content-type': 'application/json' },
  });
