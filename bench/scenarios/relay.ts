/**
 * The relay compared with the API: how many events of 1 kB per second Posthorn accepts from each, without endpoints, so that
 * nothing is delivered. And the latency from commit in the shop's database to arrival at 500/s.
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
  waitUntilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';
import { buildTimedData, startEvenly } from '../steady.ts';

type Mode = 'poll' | 'cdc';
const MODES: readonly Mode[] = ['poll', 'cdc'];
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const NAMES = { table: 'posthorn_outbox', publication: 'posthorn_outbox', slot: 'posthorn_bench' };
const ROWS_PER_TRANSACTION = 10;
const RATE = 500;

export const relay: Bench = {
  name: 'relay',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    await postgres.query('create database shop');
    const shop = openPool(postgres.url.replace(/\/[^/?]+(\?|$)/, '/shop$1'), 16);
    for (const statement of initStatements(NAMES, 'cdc')) await shop.query(statement);
    const posthorn = await startPosthorn(postgres);
    try {
      const events = quick ? 5_000 : 40_000;
      const apiRates: number[] = [];
      const relayRates: Record<Mode, number[]> = { poll: [], cdc: [] };
      await runLoad(posthorn, { events: 10_000, tenant: 'nobody', connections: 128 });
      for (let run = 0; run < Math.min(runs, 3); run += 1) {
        onProgress(`throughput, run ${run + 1}`);
        const load = await runLoad(posthorn, { events, tenant: 'nobody', connections: 128 });
        apiRates.push(load.accepted / load.seconds);
        for (const mode of MODES)
          relayRates[mode].push(await measureThroughput(postgres, shop, mode, events));
      }
      const figures: Figure[] = [{ name: 'API, one event per request', value: median(apiRates), unit: '/s' }];
      for (const mode of MODES) {
        const ratio = median(relayRates[mode].map((rate, run) => rate / apiRates[run]!));
        figures.push({ name: `${mode}: events per second`, value: median(relayRates[mode]), unit: '/s' });
        figures.push({
          name: `${mode}: ratio to the API`,
          value: ratio,
          unit: '×',
          id: `relay_${mode}_ratio`,
          goal: { atLeast: 0.5 },
          limit: { atLeast: 0.5 },
        });
      }
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'shop' });
      for (const mode of MODES) {
        onProgress(`latency, ${mode}`);
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
    exited.then(() => Promise.reject(new Error('the relay exited early'))),
  ]);
  return async () => {
    child.kill('SIGTERM');
    await exited;
  };
}

/** Inserts rows, starts a relay, and returns how many events per second it carries over. */
async function measureThroughput(
  postgres: Postgres,
  shop: pg.Pool,
  mode: Mode,
  events: number,
): Promise<number> {
  // A CDC relay reads rows that exist at its first start from the table. Start it once before, so that it reads the log.
  if (mode === 'cdc') await (await startRelay(postgres, shop, 'cdc'))();
  for (let row = 0; row < events; row += ROWS_PER_TRANSACTION) {
    await shop.query(
      `insert into posthorn_outbox (tenant, type, data)
       select 'nobody', 'order.created', json_build_object('filler', repeat('x', 960)) from generate_series(1, $1)`,
      [ROWS_PER_TRANSACTION],
    );
  }
  const stop = await startRelay(postgres, shop, mode);
  const startedAt = performance.now();
  const hasRows = async (): Promise<boolean> =>
    (await shop.query('select 1 from posthorn_outbox limit 1')).rows.length > 0;
  while (await hasRows()) await new Promise((resolve) => setTimeout(resolve, 20));
  const seconds = (performance.now() - startedAt) / 1000;
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
  await publishEvenly(shop, types, 1);
  await waitUntilReceived(postgres, shop);
  receiver.recordLatencies(true);
  await publishEvenly(shop, types, seconds);
  await waitUntilReceived(postgres, shop);
  const latencies = await receiver.takeLatencies();
  receiver.recordLatencies(false);
  await stop();
  return [0.5, 0.95, 0.99].map((p) => ({
    name: `${mode}, ${RATE}/s: commit → received p${p * 100}`,
    value: percentile(latencies, p),
    unit: 'ms',
    ...(mode === 'cdc' && p === 0.99
      ? { id: 'relay_cdc_p99_ms', goal: { atMost: 250 }, limit: { atMost: 250 } }
      : {}),
  }));
}

/** One transaction per event at a steady rate. The time is taken before the statement, so that the commit counts. */
const publishEvenly = (shop: pg.Pool, types: readonly string[], seconds: number): Promise<void> =>
  startEvenly(RATE, seconds, (index) =>
    shop.query("insert into posthorn_outbox (tenant, type, data) values ('shop', $1, $2)", [
      types[index % types.length],
      buildTimedData(),
    ]),
  );

async function waitUntilReceived(postgres: Postgres, shop: pg.Pool): Promise<void> {
  const deadline = Date.now() + 30_000;
  while ((await shop.query('select 1 from posthorn_outbox limit 1')).rows.length > 0) {
    if (Date.now() > deadline) throw new Error('rows are still in the outbox after 30 seconds');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await waitUntilSettled(postgres, 30);
}
