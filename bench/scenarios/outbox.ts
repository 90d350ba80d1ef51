/**
 * Publishing in the caller's own transaction, in Posthorn's database: from the commit to the receiver at 500/s, by SQL and
 * by the library; and what the call adds to a transaction of one insert.
 */
import type pg from 'pg';
import { publish } from '../../src/outbox/publish.ts';
import {
  openPool,
  type Postgres,
  percentile,
  type Receiver,
  registerEndpoints,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';
import { beginEvenly, dataSentNow } from '../steady.ts';

const RATE = 500;
const TENANT = 'outbox';

type Publish = (client: pg.PoolClient, type: string) => Promise<unknown>;
const WAYS: Readonly<Record<string, Publish>> = {
  'posthorn.publish': (client, type) =>
    client.query('select posthorn.publish($1, $2::json, $3)', [type, dataSentNow(), TENANT]),
  'posthorn/outbox': (client, type) => publish({ type, json: dataSentNow(), tenant: TENANT }, { tx: client }),
};

export const outbox: Bench = {
  name: 'outbox',
  async run({ postgres, receiver, quick, progress }) {
    const posthorn = await startPosthorn(postgres);
    const shop = openPool(postgres.url, 16);
    try {
      await postgres.query('create table orders (id bigserial primary key, type text)');
      progress('what it adds');
      const figures = await measureCost(shop, quick ? 2_000 : 20_000);
      await untilOutboxEmpty(postgres);
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: TENANT });
      for (const [name, way] of Object.entries(WAYS)) {
        progress(`latency, ${name}`);
        const latencies = await measureLatency(postgres, receiver, shop, types, way, quick ? 4 : 10);
        for (const p of [0.5, 0.95, 0.99]) {
          figures.push({
            name: `${name}, ${RATE}/s: commit → received p${p * 100}`,
            value: percentile(latencies, p),
            unit: 'ms',
            ...(p === 0.99
              ? {
                  id: `outbox_${name.replace(/\W/, '_')}_p99_ms`,
                  goal: { atMost: 100 },
                  floor: { atMost: 250 },
                }
              : {}),
          });
        }
      }
      return figures;
    } finally {
      await shop.end();
      await posthorn.stop();
    }
  },
};

/**
 * Pairs of transactions, one with the call and one without, in turns, in one session and timed by the server: what else
 * the machine does hits both, and no round trip is in it. Each commits for real. The difference of the two percentiles
 * is what a user sees, but for the round trip that any statement takes.
 */
async function measureCost(shop: pg.Pool, pairs: number): Promise<Figure[]> {
  const client = await shop.connect();
  try {
    await client.query('create temporary table timings (bare float8, publishing float8, call float8)');
    await client.query(`
      do $$
      declare
        payload json := json_build_object('filler', repeat('x', 980));
        bare float8[]; publishing float8[]; call float8[];
        began timestamptz; called timestamptz;
      begin
        for pair in 1 .. ${pairs} loop
          began := clock_timestamp();
          insert into orders (type) values ('bare');
          commit;
          bare[pair] := extract(epoch from clock_timestamp() - began) * 1000;
          began := clock_timestamp();
          insert into orders (type) values ('publishing');
          called := clock_timestamp();
          perform posthorn.publish('order.created', payload, '${TENANT}');
          call[pair] := extract(epoch from clock_timestamp() - called) * 1000;
          commit;
          publishing[pair] := extract(epoch from clock_timestamp() - began) * 1000;
        end loop;
        insert into timings select * from unnest(bare, publishing, call);
      end $$`);
    const { rows } =
      await client.query<Record<'bare' | 'publishing' | 'call', number>>('select * from timings');
    return [0.5, 0.95].flatMap((p) => {
      const micros = (what: 'bare' | 'publishing' | 'call'): number =>
        1000 *
        percentile(
          rows.map((row) => row[what]),
          p,
        );
      const at = `p${p * 100}`;
      return [
        { name: `the call alone: ${at}`, value: micros('call'), unit: 'µs' },
        { name: `one insert, committed: ${at}`, value: micros('bare'), unit: 'µs' },
        {
          name: `one insert and posthorn.publish, committed: ${at}`,
          value: micros('publishing'),
          unit: 'µs',
        },
        {
          name: `posthorn.publish adds: ${at}`,
          value: micros('publishing') - micros('bare'),
          unit: 'µs',
          ...(p === 0.95
            ? { id: 'outbox_publish_p95_us', goal: { atMost: 1000 }, floor: { atMost: 1000 } }
            : {}),
        },
      ];
    });
  } finally {
    client.release();
  }
}

async function measureLatency(
  postgres: Postgres,
  receiver: Receiver,
  shop: pg.Pool,
  types: readonly string[],
  way: Publish,
  seconds: number,
): Promise<number[]> {
  // The time is taken in `way`, before the call: its commit is part of what is measured.
  const order = async (index: number): Promise<void> => {
    const type = types[index % types.length]!;
    const client = await shop.connect();
    await client.query('begin');
    await client.query('insert into orders (type) values ($1)', [type]);
    await way(client, type);
    await client.query('commit');
    client.release();
  };
  const run = async (forSeconds: number): Promise<void> => {
    await beginEvenly(RATE, forSeconds, order);
    await untilOutboxEmpty(postgres);
    await untilSettled(postgres, 30);
  };
  await run(1);
  receiver.record(true);
  await run(seconds);
  const latencies = await receiver.latencies();
  receiver.record(false);
  return latencies;
}

async function untilOutboxEmpty(postgres: Postgres): Promise<void> {
  const deadline = Date.now() + 60_000;
  while ((await postgres.query('select 1 from posthorn.outbox limit 1')).length > 0) {
    if (Date.now() > deadline) throw new Error('rows are still waiting in the outbox');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
