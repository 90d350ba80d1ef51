/**
 * The relay against the API: how many events a second each brings into Posthorn (1 kB, no endpoints, so that nothing but
 * accepting is measured), in the same run; and from the commit in the shop's database to the receiver, at 500/s.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { initStatements } from '../../src/relay/init.ts';
import {
  median,
  openPool,
  type Postgres,
  percentile,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';
import { beginEvenly, dataSentNow } from '../steady.ts';

type Mode = 'poll' | 'cdc';
const MODES: readonly Mode[] = ['poll', 'cdc'];
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const NAMES = { table: 'posthorn_outbox', publication: 'posthorn_outbox', slot: 'posthorn_bench' };
const ROWS_PER_TRANSACTION = 10;
const RATE = 500;

export const relay: Bench = {
  name: 'relay',
  async run({ postgres, receiver, runs, quick, progress }) {
    await postgres.query('create database shop');
    const shop = openPool(postgres.url.replace(/\/[^/?]+(\?|$)/, '/shop$1'), 16);
    for (const statement of initStatements(NAMES, 'cdc')) await shop.query(statement);
    const posthorn = await startPosthorn(postgres);
    try {
      const events = quick ? 5_000 : 40_000;
      const api: number[] = [];
      const relayed: Record<Mode, number[]> = { poll: [], cdc: [] };
      await runLoad(posthorn, { events: 10_000, tenant: 'nobody', connections: 128 });
      for (let run = 0; run < Math.min(runs, 3); run += 1) {
        progress(`throughput, run ${run + 1}`);
        const load = await runLoad(posthorn, { events, tenant: 'nobody', connections: 128 });
        api.push(load.accepted / load.seconds);
        for (const mode of MODES) relayed[mode].push(await carryBacklog(postgres, shop, mode, events));
      }
      const figures: Figure[] = [{ name: 'API, one event per request', value: median(api), unit: '/s' }];
      for (const mode of MODES) {
        const ratio = median(relayed[mode].map((rate, run) => rate / api[run]!));
        figures.push({ name: `${mode}: events per second`, value: median(relayed[mode]), unit: '/s' });
        figures.push({
          name: `${mode}: ratio to the API`,
          value: ratio,
          unit: '×',
          id: `relay_${mode}_ratio`,
          goal: { atLeast: 0.5 },
          floor: { atLeast: 0.5 },
        });
      }
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'shop' });
      for (const mode of MODES) {
        progress(`latency, ${mode}`);
        figures.push(...(await measureLatency(postgres, receiver, shop, mode, types, quick ? 4 : 10)));
      }
      return figures;
    } finally {
      await posthorn.stop();
      await shop.end();
    }
  },
};

async function startRelay(postgres: Postgres, shop: pg.Pool, mode: Mode): Promise<() => Promise<void>> {
  const child = spawn(
    process.execPath,
    [MAIN, 'relay', '--mode', mode, '--slot', NAMES.slot, '--name', 'shop'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        DATABASE_URL: postgres.url,
        POSTHORN_RELAY_FROM: shop.options.connectionString,
        POSTHORN_RELAY_REPORT_MS: '100',
        POSTHORN_LOG_LEVEL: 'warn',
      },
    },
  );
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await Promise.race([
    new Promise((resolve) => child.stdout.once('data', resolve)),
    exited.then(() => Promise.reject(new Error('The relay ended early'))),
  ]);
  return async () => {
    child.kill('SIGTERM');
    await exited;
  };
}

/** Rows that wait in the shop, and how quickly a relay that starts then brings them. */
async function carryBacklog(postgres: Postgres, shop: pg.Pool, mode: Mode, events: number): Promise<number> {
  // What the table has before the first look is read from there: the log should be what is measured.
  if (mode === 'cdc') await (await startRelay(postgres, shop, 'cdc'))();
  for (let row = 0; row < events; row += ROWS_PER_TRANSACTION) {
    await shop.query(
      `insert into posthorn_outbox (tenant, type, data)
       select 'nobody', 'order.created', json_build_object('filler', repeat('x', 960)) from generate_series(1, $1)`,
      [ROWS_PER_TRANSACTION],
    );
  }
  const stop = await startRelay(postgres, shop, mode);
  const began = performance.now();
  const left = async (): Promise<boolean> =>
    (await shop.query('select 1 from posthorn_outbox limit 1')).rows.length > 0;
  while (await left()) await new Promise((resolve) => setTimeout(resolve, 20));
  const seconds = (performance.now() - began) / 1000;
  await stop();
  return events / seconds;
}

async function measureLatency(
  postgres: Postgres,
  receiver: Receiver,
  shop: pg.Pool,
  mode: Mode,
  types: readonly string[],
  seconds: number,
): Promise<Figure[]> {
  const stop = await startRelay(postgres, shop, mode);
  await publishAt(shop, types, 1);
  await untilReceived(postgres, shop);
  receiver.record(true);
  await publishAt(shop, types, seconds);
  await untilReceived(postgres, shop);
  const latencies = await receiver.latencies();
  receiver.record(false);
  await stop();
  return [0.5, 0.95, 0.99].map((p) => ({
    name: `${mode}, ${RATE}/s: commit → received p${p * 100}`,
    value: percentile(latencies, p),
    unit: 'ms',
    ...(mode === 'cdc' && p === 0.99
      ? { id: 'relay_cdc_p99_ms', goal: { atMost: 250 }, floor: { atMost: 250 } }
      : {}),
  }));
}

/** A transaction for each, begun evenly. The time is taken before the statement: its commit is part of what is measured. */
const publishAt = (shop: pg.Pool, types: readonly string[], seconds: number): Promise<void> =>
  beginEvenly(RATE, seconds, (index) =>
    shop.query("insert into posthorn_outbox (tenant, type, data) values ('shop', $1, $2)", [
      types[index % types.length],
      dataSentNow(),
    ]),
  );

async function untilReceived(postgres: Postgres, shop: pg.Pool): Promise<void> {
  const deadline = Date.now() + 30_000;
  while ((await shop.query('select 1 from posthorn_outbox limit 1')).rows.length > 0) {
    if (Date.now() > deadline) throw new Error('rows are still waiting');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await untilSettled(postgres, 30);
}
