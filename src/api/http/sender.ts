import type { IncomingHttpHeaders } from 'node:http';

/** What identifies the sender of a request. A Fastify request has these fields. */
export interface Sender {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}
