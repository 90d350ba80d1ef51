/** The target of a request: the parts of a URL that has passed the egress checks. */
import type { ErrorClass } from '../domain/outcome.ts';
import type { ClientIdentity } from './client-identity.ts';
import { bareHost, checkUrl } from './egress/check-url.ts';
import type { EgressPolicy } from './egress/policy.ts';
import type { PoolTarget } from './socket-pool.ts';

export interface Destination extends PoolTarget {
  readonly url: string;
  readonly path: string;
}

export function locateUrl(
  url: string,
  egress: EgressPolicy,
  identity: ClientIdentity | null,
): Destination | ErrorClass {
  const check = checkUrl(url, egress);
  if (!check.ok) return 'egress_forbidden';
  const { origin, protocol, hostname, port, pathname, search } = new URL(check.url);
  const tls = protocol === 'https:';
  return {
    url: check.url,
    origin,
    path: pathname + search,
    pool: identity === null ? origin : `${origin} ${identity.name}`,
    target: { tls, host: bareHost(hostname), port: port === '' ? (tls ? 443 : 80) : Number(port), identity },
  };
}
