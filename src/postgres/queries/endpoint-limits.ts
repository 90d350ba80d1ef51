/** Queries about an endpoint among the other endpoints of its tenant, and about the catalogue. */
import type { EndpointConfig } from '../../domain/endpoint-config.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Client, Queryable } from '../database.ts';

/**
 * Lets one transaction at a time check and change what the tenant subscribes to, until it ends. Does not block events or
 * keys of the tenant. Take it before the lock of an endpoint: an expunge takes them in this order.
 */
export async function lockSubscriptions(client: Client, tenant: string): Promise<void> {
  await client.query('select from posthorn.tenants where id = $1 for no key update', [tenant]);
}

/** `lockSubscriptions` for the tenant of an endpoint. Does nothing if there is no such endpoint. */
export async function lockSubscriptionsOf(client: Client, endpointId: Uuid): Promise<void> {
  await client.query(
    `select from posthorn.tenants where id = (select tenant from posthorn.endpoints where id = $1) for no key update`,
    [endpointId],
  );
}

/**
 * Whether the tenant has as many endpoints as it may have. `defaultMax` applies if the tenant has no limit of its own. Call
 * it after `lockSubscriptions`.
 */
export async function checkEndpointLimit(
  client: Client,
  tenant: string,
  defaultMax: number,
): Promise<{ readonly max: number; readonly isReached: boolean }> {
  const { rows } = await client.query<{ max: number; isReached: boolean }>(
    `select m.max, (select count(*) from (select from posthorn.endpoints where tenant = $1 and deleted_at is null
                                           limit m.max) e) >= m.max as "isReached"
       from (select coalesce(max_endpoints, $2) as max from posthorn.tenants where id = $1) m`,
    [tenant, defaultMax],
  );
  return rows[0]!;
}

export interface SameUrlEndpoint {
  readonly id: Uuid;
  readonly config: Pick<EndpointConfig, 'events' | 'channels'>;
}

/** The next endpoints of the tenant with this URL after the endpoint `after`, oldest first, without `id` itself. */
export async function findEndpointsWithUrl(
  client: Queryable,
  { id, tenant, url }: { readonly id: Uuid; readonly tenant: string; readonly url: string },
  { after, limit }: { readonly after: Uuid | null; readonly limit: number },
): Promise<SameUrlEndpoint[]> {
  const { rows } = await client.query<SameUrlEndpoint>(
    `select id, jsonb_build_object('events', config->'events', 'channels', config->'channels') as config
       from posthorn.endpoints
      where tenant = $1 and md5(url) = md5($2) and url = $2 and deleted_at is null and id <> $3
        and ($4::uuid is null or id > $4)
      order by id limit $5`,
    [tenant, url, id, after, limit],
  );
  return rows;
}

/** Returns the patterns that match no event type of the catalogue. Returns none if the catalogue is empty. */
export async function findPatternsWithoutType(
  client: Queryable,
  patterns: readonly string[],
): Promise<Set<string>> {
  const { rows } = await client.query<{ pattern: string }>(
    `select pattern from unnest($1::text[]) as pattern
      where exists (select from posthorn.event_types)
        and not exists (select from posthorn.event_types t
                         where t.name = pattern
                            or (right(pattern, 2) = '.*' and starts_with(t.name, left(pattern, -1))))`,
    [patterns],
  );
  return new Set(rows.map(({ pattern }) => pattern));
}
