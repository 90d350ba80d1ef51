/** The history in the database: owners of shards and states of circuits over time. Triggers of the test record it. */
import { hostname } from 'node:os';
import type { Uuid } from '../../src/domain/ids.ts';
import { correctTime } from './database-clock.ts';
import type { Postgres, System } from './system.ts';

export interface Ownership {
  readonly shard: number;
  readonly from: number;
  readonly to: number;
  /** The process that owned it ("worker-2"). Null: no owner. */
  readonly owner: string | null;
  /** It was taken from a worker that counted as dead. */
  readonly unclean: boolean;
}

export interface CircuitChange {
  readonly endpoint: Uuid;
  readonly at: number;
  readonly circuit: 'closed' | 'open' | 'half_open';
}

export async function keepHistory(postgres: Postgres): Promise<void> {
  await postgres.query(`
    create schema chaos;
    create table chaos.shards (n bigserial, at timestamptz, shard int, owner uuid, unclean boolean);
    create table chaos.workers (id uuid, name text);
    create table chaos.circuits (n bigserial, at timestamptz, endpoint_id uuid, circuit text);
    create function chaos.shard_changed() returns trigger language plpgsql as $$ begin
      insert into chaos.shards (at, shard, owner, unclean)
      values (clock_timestamp(), new.shard, new.owner, new.unclean_at is distinct from old.unclean_at);
      return null; end $$;
    create trigger chaos after update of owner on posthorn.shards for each row execute function chaos.shard_changed();
    create function chaos.worker_came() returns trigger language plpgsql as $$ begin
      insert into chaos.workers values (new.id, new.name); return null; end $$;
    create trigger chaos after insert on posthorn.workers for each row execute function chaos.worker_came();
    create function chaos.circuit_changed() returns trigger language plpgsql as $$ begin
      insert into chaos.circuits (at, endpoint_id, circuit) values (clock_timestamp(), new.endpoint_id, new.circuit);
      return null; end $$;
    create trigger chaos after insert or update on posthorn.endpoint_health
      for each row execute function chaos.circuit_changed();
    insert into chaos.workers select id, name from posthorn.workers;
    insert into chaos.shards (at, shard, owner, unclean) select '-infinity', shard, owner, false from posthorn.shards`);
}

export async function readOwnership(system: System): Promise<Ownership[]> {
  const names = new Map<string, string>();
  for (const member of system.workers) {
    for (const pid of member.pids) names.set(`${hostname()}:${pid}`, member.name);
  }
  const rows = await system.postgres.query<{
    at: number;
    shard: number;
    name: string | null;
    unclean: boolean;
  }>(`
    select case when at = '-infinity' then 0 else extract(epoch from at)::float8 * 1000 end as at, shard, unclean,
           (select name from chaos.workers w where w.id = s.owner limit 1) as name
      from chaos.shards s order by shard, n`);
  return rows.map((row, index) => {
    const next = rows[index + 1];
    return {
      shard: row.shard,
      from: correctTime(row.at),
      to: next?.shard === row.shard ? correctTime(next.at) : Number.POSITIVE_INFINITY,
      owner: row.name === null ? null : (names.get(row.name) ?? row.name),
      unclean: row.unclean,
    };
  });
}

export async function readCircuits(postgres: Postgres): Promise<CircuitChange[]> {
  const rows = await postgres.query<CircuitChange>(`
    select endpoint_id as endpoint, extract(epoch from at)::float8 * 1000 as at, circuit
      from chaos.circuits order by endpoint_id, n`);
  return rows.map((row) => ({ ...row, at: correctTime(row.at) }));
}

export interface StoredAttempt {
  readonly delivery: Uuid;
  readonly endpoint: Uuid;
  readonly number: number;
  readonly at: number;
  readonly worker: string;
  readonly outcome: string;
}

export async function readAttempts(system: System): Promise<StoredAttempt[]> {
  const names = new Map<string, string>();
  for (const member of system.workers) {
    for (const pid of member.pids) names.set(`${hostname()}:${pid}`, member.name);
  }
  const rows = await system.postgres.query<StoredAttempt>(`
    select a.delivery_id as delivery, d.endpoint_id as endpoint, a.number, a.worker, a.outcome,
           extract(epoch from a.started_at)::float8 * 1000 as at
      from posthorn.attempts a
      join (select id, endpoint_id from posthorn.deliveries union all select id, endpoint_id from posthorn.dead_letters
            union all select id, endpoint_id from posthorn.queue) d on d.id = a.delivery_id
     order by a.started_at`);
  return rows.map((row) => ({
    ...row,
    at: correctTime(row.at),
    worker: names.get(row.worker) ?? row.worker,
  }));
}
