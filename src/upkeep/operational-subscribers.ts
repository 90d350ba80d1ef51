import type { Endpoint } from '../domain/endpoint.ts';
import { matchesType, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import type { OperationalType } from '../domain/operational.ts';

/** The endpoints of a tenant that subscribe to an operational event type. */
export type FindSubscribers = (tenant: string, type: OperationalType) => readonly Endpoint[];

/** Few endpoints subscribe to operational events at all, so they are collected once per round. */
export function collectSubscribers(endpoints: Iterable<Endpoint>): FindSubscribers {
  const byTenant = new Map<string, { endpoint: Endpoint; patterns: string[] }[]>();
  for (const endpoint of endpoints) {
    const patterns = endpoint.events.filter((pattern) => pattern.startsWith(RESERVED_TYPE_PREFIX));
    // Operational events have no channel, so an endpoint that asks for channels gets none of them.
    if (patterns.length === 0 || !endpoint.enabled || endpoint.deleted || endpoint.channels.length > 0)
      continue;
    const others = byTenant.get(endpoint.tenant);
    if (others === undefined) byTenant.set(endpoint.tenant, [{ endpoint, patterns }]);
    else others.push({ endpoint, patterns });
  }
  return (tenant, type) =>
    (byTenant.get(tenant) ?? []).flatMap(({ endpoint, patterns }) =>
      patterns.some((pattern) => matchesType(pattern, type)) ? [endpoint] : [],
    );
}

/** Whether any endpoint of any tenant subscribes to the type. */
export function hasSubscriber(endpoints: Iterable<Endpoint>, type: OperationalType): boolean {
  for (const { events, enabled, deleted } of endpoints)
    if (enabled && !deleted && events.some((pattern) => matchesType(pattern, type))) return true;
  return false;
}
