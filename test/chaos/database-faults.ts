/** Faults inside the database: large fan-outs, slow statements, a locked table. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CLOCK_STEP_MS } from './database-clock.ts';
import type { Fault, FaultContext } from './faults.ts';
import { type Postgres, TIMES } from './system.ts';
import { until } from './until.ts';

type Log = (fault: Pick<Fault, 'what' | 'hits'>) => Fault;

const WIDE_ENDPOINTS = 20_000;
const WIDE_EVENTS = 2;
/** Seconds per row. A batch of twenty events takes longer than their statement may. */
const SLOW_ROW_SECONDS = 0.4;
const SLOW_MS = 10_000;

/** Lets `slow_statements` make statements slow without a lock on the tables. */
export async function prepareSlowness(postgres: Postgres): Promise<void> {
  await postgres.query(`
    create table chaos.slowness (seconds float8 not null);
    insert into chaos.slowness values (0);
    create function chaos.be_slow() returns trigger language plpgsql as $$
    declare wait float8 := (select seconds from chaos.slowness);
    begin
      if wait > 0 then perform pg_sleep(wait); end if;
      return case when tg_op = 'DELETE' then old else new end;
    end $$;
    create trigger chaos_slowness before insert on posthorn.events for each row execute function chaos.be_slow();
    create trigger chaos_slowness before delete on posthorn.queue for each row execute function chaos.be_slow()`);
}

export const databaseFaults = {
  /**
   * Events for 20,000 endpoints. The server that has accepted them is killed while their deliveries are being written.
   * Other processes write the rest: each endpoint gets exactly one delivery of each event.
   */
  async large_fan_out({ system, random, complaints }: FaultContext, log: Log) {
    const tenant = `wide-${randomUUID()}`;
    await createEndpoints(system.postgres, tenant);
    const member = random.pick(system.apis);
    const fault = log({
      what: `${WIDE_EVENTS} events for ${WIDE_ENDPOINTS} endpoints, and kill -9 ${member.name}`,
      hits: 'none',
    });
    for (let number = 1; number <= WIDE_EVENTS; number += 1) {
      // Due tomorrow: the fault is about writing the deliveries.
      const deliver_at = new Date(Date.now() + 86_400_000).toISOString();
      const event = {
        tenant,
        type: 'wide.event',
        data: number,
        idempotency_key: `${tenant}-${number}`,
        deliver_at,
      };
      await until(`event ${number} is accepted`, () => member.publish(system.key, event), 30_000);
    }
    await member.kill();
    fault.to = Date.now();
    await member.bringBack();
    const expected = WIDE_EVENTS * WIDE_ENDPOINTS;
    await until(
      'all deliveries are written',
      async () => (await system.hasStoredAll()) && (await countSlices(system.postgres, tenant)) === 0,
      60_000,
    )
      .then(async () => {
        const { rows, pairs } = await countWide(system.postgres, tenant);
        if (rows !== expected || pairs !== expected)
          complaints.push(`${rows} deliveries (${pairs} distinct) of ${expected} were written for ${tenant}`);
      })
      .catch((error: Error) => complaints.push(`${tenant}: ${error.message}`));
    await removeWide(system.postgres, tenant);
  },

  /** Every row takes so long that batches run into their statement timeout. They must be halved until they fit. */
  async slow_statements({ system }: FaultContext, log: Log) {
    const fault = log({
      what: `every new event and every recorded result takes ${SLOW_ROW_SECONDS} s for ${SLOW_MS} ms`,
      hits: 'all',
    });
    await system.postgres.query('update chaos.slowness set seconds = $1', [SLOW_ROW_SECONDS]);
    await delay(SLOW_MS);
    await system.postgres.query('update chaos.slowness set seconds = 0');
    fault.to = Date.now();
  },

  /** No result can be recorded. Leases are valid, and yet a server must not call itself ready. */
  async lock_the_queue({ system, complaints }: FaultContext, log: Log) {
    const fault = log({ what: 'the queue is locked against writes', hits: 'all' });
    const unlock = await system.postgres.lock('lock table posthorn.queue in exclusive mode');
    for (const api of system.apis) {
      const limitMs = 2 * TIMES.deadAfterMs + 10_000;
      await until(`${api.name} is not ready`, async () => !(await api.isReadyNow()), limitMs).catch(() =>
        complaints.push(`${api.name} was ready for ${limitMs} ms though no result could be recorded`),
      );
    }
    await unlock();
    fault.to = Date.now();
  },

  /** With CHAOS_DATABASE_CLOCK=1, and only if the clock can be set. Shorter than the 15 seconds after which Posthorn believes the new time. */
  async step_the_database_clock({ system, random }: FaultContext, log: Log) {
    const aheadMs = CLOCK_STEP_MS * (random.chance(0.5) ? 1 : -1);
    const forMs = random.between(50, 8_000);
    const fault = log({
      what: `the clock of PostgreSQL steps by ${aheadMs} ms for ${Math.round(forMs)} ms`,
      hits: 'none',
    });
    await system.postgres.time.set(aheadMs);
    await delay(forMs);
    await system.postgres.time.set(0);
    fault.to = Date.now();
  },
};

async function createEndpoints(postgres: Postgres, tenant: string): Promise<void> {
  await postgres.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version)
     insert into posthorn.endpoints (id, tenant, url, version)
     select gen_random_uuid(), $1, 'http://127.0.0.1:9/' || n, version from next, generate_series(1, $2::int) as n`,
    [tenant, WIDE_ENDPOINTS],
  );
}

async function countSlices(postgres: Postgres, tenant: string): Promise<number> {
  return (await postgres.query('select from posthorn.fan_out_slices where tenant = $1', [tenant])).length;
}

async function countWide(postgres: Postgres, tenant: string): Promise<{ rows: number; pairs: number }> {
  const [counts] = await postgres.query<{ rows: number; pairs: number }>(
    `select count(*)::int as rows, count(distinct (posthorn.event_of_delivery(id), endpoint_id))::int as pairs
       from (select id, endpoint_id from posthorn.queue where tenant = $1
             union all select id, endpoint_id from posthorn.deliveries where tenant = $1) as written`,
    [tenant],
  );
  return counts!;
}

/** The endpoints would slow down the rest of the run. */
async function removeWide(postgres: Postgres, tenant: string): Promise<void> {
  await postgres.query('delete from posthorn.queue where tenant = $1', [tenant]);
  await postgres.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version)
     update posthorn.endpoints e set deleted_at = now(), version = next.version from next where e.tenant = $1`,
    [tenant],
  );
}
