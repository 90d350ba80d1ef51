/** The client certificate of an endpoint, and a name that decides which requests may share connections. */
import { createHash } from 'node:crypto';
import type { Endpoint } from '../domain/endpoint.ts';
import type { ClientCertificate } from '../domain/endpoint-auth.ts';

export interface ClientIdentity {
  /**
   * Only requests with the same name share connections and TLS sessions. The name contains the endpoint, so that a
   * connection never carries requests of another endpoint. It also contains the certificate: after a change, connections
   * with the old certificate are not reused, and close when their keep-alive time is over.
   */
  readonly name: string;
  readonly certificate: ClientCertificate;
}

export function identityOf({ id, certificate }: Endpoint): ClientIdentity | null {
  if (certificate === null) return null;
  const { cert, key, ca } = certificate;
  const hash = createHash('sha256')
    .update(JSON.stringify([cert, key, ca]))
    .digest('base64url');
  return { name: `${id} ${hash}`, certificate };
}
