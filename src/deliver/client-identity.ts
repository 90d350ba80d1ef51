/** The client certificate of an endpoint, as connections know it. */
import { createHash } from 'node:crypto';
import type { Endpoint } from '../domain/endpoint.ts';
import type { ClientCertificate } from '../domain/endpoint-auth.ts';

export interface ClientIdentity {
  /**
   * Connections and TLS sessions are shared by those with the same name only. The endpoint is part of it: what was opened
   * with its certificate never carries another's requests, not even to the same origin. So is the certificate: once it is
   * changed, what was opened with the old one is not used again, and closes when its keep-alive is over.
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
