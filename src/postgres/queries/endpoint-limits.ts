/** Queries about an endpoint among the other endpoints of its tenant, and about the catalogue. */
import type { EndpointConfig } from '../../domain/endpoint-config.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Client, Queryable } from '../database.ts';

/**
 * Whether the tenant has more endpoints than it may have. `defaultMax` applies if the tenant has no limit of its own.
 * Call it in the transaction that created the endpoint: that transaction holds the lock of `nextVersion`, so no other
 * transaction can create one.
 */
export async function exceedsEndpointLimit(
  client: Client,
  tenant: string,
  defaultMax: number,
): Promise<{ readonly max: number; readonly exceeded: boolean }> {
  const { rows } = await client.query<{ max: number; exceeded: boolean }>(
    `select m.max, (select count(*) from (select from posthorn.endpoints where tenant = $1 and deleted_at is null
                                           limit m.max + 1) e) > m.max as exceeded
       from (select coalesce(max_endpoints, $2) as max from posthorn.tenants where id = $1) m`,
    [tenant, defaultMax],
  );
  return rows[0]!;
}

export interface Neighbour {
  readonly id: Uuid;
  readonly config: Pick<EndpointConfig, 'events' | 'channels'>;
}

/** The other endpoints of the tenant with this URL, oldest first. `limit` null: all of them. */
export async function endpointsWithUrl(
  client: Queryable,
  { id, tenant, url }: { readonly id: Uuid; readonly tenant: string; readonly url: string },
  limit: number | null,
): Promise<Neighbour[]> {
  const { rows } = await client.query<Neighbour>(
    `select id, jsonb_build_object('events', config->'events', 'channels', config->'channels') as config
       from posthorn.endpoints
      where tenant = $1 and md5(url) = md5($2) and url = $2 and deleted_at is null and id <> $3
      order by id limit $4`,
    [tenant, url, id, limit],
  );
  return rows;
}

/** The patterns that match no event type of the catalogue. None if the catalogue is empty. */
export async function patternsWithoutType(
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
