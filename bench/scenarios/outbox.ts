/**
 * Publishing in the caller's transaction, in Posthorn's database: the latency from commit to arrival at 500/s, with SQL and
 * with the library, and the time that the call adds to a transaction with one insert.
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
  waitUntilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';
import { buildTimedData, startEvenly } from '../steady.ts';

const RATE = 500;
const TENANT = 'outbox';

type Publish = (client: pg.PoolClient, type: string) => Promise<unknown>;
const METHODS: Readonly<Record<string, Publish>> = {
  'posthorn.publish': (client, type) =>
    client.query('select posthorn.publish($1, $2::json, $3)', [type, buildTimedData(), TENANT]),
  'posthorn/outbox': (client, type) =>
    publish({ type, json: buildTimedData(), tenant: TENANT }, { tx: client }),
};

export const outbox: Bench = {
  name: 'outbox',
  async run({ postgres, receiver, quick, onProgress }) {
    const posthorn = await startPosthorn(postgres);
    const shop = openPool(postgres.url, 16);
    try {
      await postgres.query('create table orders (id bigserial primary key, type text)');
      onProgress('added time');
      const figures = await measureCost(shop, quick ? 2_000 : 20_000);
      await waitUntilOutboxEmpty(postgres);
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: TENANT });
      for (const [name, publishEvent] of Object.entries(METHODS)) {
        onProgress(`latency, ${name}`);
        const latencies = await measureLatency(postgres, receiver, shop, types, publishEvent, quick ? 4 : 10);
        for (const p of [0.5, 0.95, 0.99]) {
          figures.push({
            name: `${name}, ${RATE}/s: commit → received p${p * 100}`,
            value: percentile(latencies, p),
            unit: 'ms',
            ...(p === 0.99
              ? {
                  id: `outbox_${name.replace(/\W/, '_')}_p99_ms`,
                  goal: { atMost: 100 },
                  limit: { atMost: 250 },
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
 * Measures the added time with pairs of transactions, one with the call and one without, so that other work on the machine
 * affects both. One session runs them and the server takes the time, so that no round trips count. Every transaction
 * commits. The result is the difference of the two percentiles.
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
      const micros = (column: 'bare' | 'publishing' | 'call'): number =>
        1000 *
        percentile(
          rows.map((row) => row[column]),
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
            ? { id: 'outbox_publish_p95_us', goal: { atMost: 1000 }, limit: { atMost: 1000 } }
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
  publishEvent: Publish,
  seconds: number,
): Promise<number[]> {
  // `publishEvent` takes the time before its call, so that the commit is part of the latency.
  const placeOrder = async (index: number): Promise<void> => {
    const type = types[index % types.length]!;
    const client = await shop.connect();
    await client.query('begin');
    await client.query('insert into orders (type) values ($1)', [type]);
    await publishEvent(client, type);
    await client.query('commit');
    client.release();
  };
  const run = async (forSeconds: number): Promise<void> => {
    await startEvenly(RATE, forSeconds, placeOrder);
    await waitUntilOutboxEmpty(postgres);
    await waitUntilSettled(postgres, 30);
  };
  await run(1);
  receiver.recordLatencies(true);
  await run(seconds);
  const latencies = await receiver.takeLatencies();
  receiver.recordLatencies(false);
  return latencies;
}

async function waitUntilOutboxEmpty(postgres: Postgres): Promise<void> {
  const deadline = Date.now() + 60_000;
  while ((await postgres.query('select 1 from posthorn.outbox limit 1')).length > 0) {
    if (Date.now() > deadline) throw new Error('rows are still in the outbox after 60 seconds');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
