import type { Queryable } from '../database.ts';

export interface RegionStatus {
  readonly name: string;
  readonly number: number;
  /** Workers that have renewed their lease recently. */
  readonly workers: number;
  /** Whether a worker owns some of its shards: one of its own, or one of the default region that stands in. */
  readonly isServed: boolean;
  /** Whether an endpoint names it. */
  readonly isUsed: boolean;
}

/** All regions besides the default one, in the order of their numbers. */
export async function listRegions(client: Queryable, deadAfterMs: number): Promise<RegionStatus[]> {
  const { rows } = await client.query<{
    name: string;
    number: number;
    workers: number;
    is_served: boolean;
    is_used: boolean;
  }>({
    name: 'list_regions',
    text: `
      select r.name, r.number,
             (select count(*)::int from posthorn.workers w
               where w.region = r.number
                 and w.renewed_at > clock_timestamp() - make_interval(secs => $1::float8 / 1000)) as workers,
             exists (select from posthorn.shards s
                      where s.shard between r.number * 256 and r.number * 256 + 255 and s.owner is not null) as is_served,
             exists (select from posthorn.endpoints e
                      where e.wanted_shard between r.number * 256 and r.number * 256 + 255
                        and e.wanted_shard is not null and e.deleted_at is null) as is_used
        from posthorn.regions r order by r.number`,
    values: [deadAfterMs],
  });
  return rows.map(({ is_served, is_used, ...region }) => ({
    ...region,
    isServed: is_served,
    isUsed: is_used,
  }));
}

export async function listRegionNames(client: Queryable): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from posthorn.regions order by name');
  return rows.map(({ name }) => name);
}
