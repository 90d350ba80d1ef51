/**
 * What an event costs: processor time of Posthorn and of PostgreSQL per delivered event with few and with many clients,
 * beside that of a bare sign-and-POST loop; disk and WAL; latencies at a steady rate; and what an idle node costs.
 * `BENCH_PROCESSES=1` measures a single process instead of two.
 */
import {
  measureBareLoop,
  median,
  type Postgres,
  type Posthorn,
  percentile,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import { readPostmasterPid, readTreeSeconds } from '../process-figures.ts';
import type { Bench, BenchContext, Figure } from '../scenario.ts';
import { createEndpoints, measureIdle } from './endpoints.ts';

/** The bytes of `data` in every event. */
const PAYLOAD_BYTES = 300;
const CLIENTS = [2, 16, 64, 128] as const;
/** The goal for Posthorn and PostgreSQL together, as a multiple of the bare loop's processor time. */
const GOALS: Partial<Record<number, number>> = { 2: 6, 16: 4, 64: 3 };
const RATES = [200, 1_000] as const;
const IDLE_ENDPOINTS = 1_000;
const EVENTS_PER_CLIENTS: Record<(typeof CLIENTS)[number], number> = {
  2: 4_000,
  16: 12_000,
  64: 30_000,
  128: 30_000,
};

interface Cost {
  readonly perSecond: number;
  readonly posthornUs: number;
  readonly postgresUs: number;
  /** Posthorn and PostgreSQL together, over the bare loop in the same round. */
  readonly ratio: number;
  readonly walBytes: number;
}

export const cost: Bench = {
  name: 'cost',
  async run(context) {
    const { postgres, receiver } = context;
    const processes = process.env.BENCH_PROCESSES ?? '2';
    const posthorn = await startPosthorn(postgres, {}, ['--processes', processes]);
    try {
      const types = await registerEndpoints(posthorn, receiver, { count: 1 });
      // V8 needs about ten thousand events in each process to optimize the hot path.
      await runLoad(posthorn, { events: 20_000, types, bytes: PAYLOAD_BYTES });
      await waitUntilSettled(postgres, 60);
      return [
        ...(await measureClients(context, posthorn, types)),
        ...(await measureRates(context, posthorn, types)),
        ...(await measureDisk(context, posthorn, types)),
        ...(await measureIdleNode(context, posthorn)),
      ];
    } finally {
      await posthorn.stop();
    }
  },
};

async function measureClients(context: BenchContext, posthorn: Posthorn, types: string[]): Promise<Figure[]> {
  const { runs, quick, onProgress } = context;
  const costs = new Map<number, Cost[]>(CLIENTS.map((clients) => [clients, []]));
  for (let round = 1; round <= runs; round += 1) {
    for (const clients of CLIENTS) {
      onProgress(`${clients} clients, round ${round} of ${runs}`);
      const events = EVENTS_PER_CLIENTS[clients] / (quick ? 4 : 1);
      costs.get(clients)!.push(await measureCost(context, posthorn, types, clients, events));
    }
  }
  const totals = new Map<number, number>();
  const figures: Figure[] = [];
  for (const [clients, measured] of costs) {
    const medianOf = (pick: (cost: Cost) => number) => median(measured.map(pick));
    const total = medianOf(({ posthornUs, postgresUs }) => posthornUs + postgresUs);
    totals.set(clients, total);
    const label = `${clients} clients`;
    const goal = GOALS[clients];
    figures.push(
      { name: `${label}: events`, value: medianOf(({ perSecond }) => perSecond), unit: '/s' },
      { name: `${label}: CPU of Posthorn`, value: medianOf(({ posthornUs }) => posthornUs), unit: 'µs' },
      { name: `${label}: CPU of PostgreSQL`, value: medianOf(({ postgresUs }) => postgresUs), unit: 'µs' },
      {
        name: `${label}: CPU over the bare loop's`,
        value: medianOf(({ ratio }) => ratio),
        unit: '×',
        id: `cost_${clients}`,
        better: 'lower',
        ...(goal === undefined ? {} : { goal: { atMost: goal } }),
      },
      { name: `${label}: WAL`, value: medianOf(({ walBytes }) => walBytes), unit: 'B', better: 'lower' },
    );
  }
  figures.push(
    compare('2 clients over 64', totals.get(2)! / totals.get(64)!, 1.5),
    compare('128 clients over 64', totals.get(128)! / totals.get(64)!, 1),
  );
  return figures;
}

const compare = (name: string, value: number, atMost: number): Figure => ({
  name: `CPU per event, ${name}`,
  value,
  unit: '×',
  better: 'lower',
  goal: { atMost },
});

async function measureCost(
  { postgres, receiver }: { postgres: Postgres; receiver: Receiver },
  posthorn: Posthorn,
  types: string[],
  clients: number,
  events: number,
): Promise<Cost> {
  const postmaster = await readPostmasterPid(postgres);
  const bare = await measureBareLoop(receiver, 1, PAYLOAD_BYTES);
  const read = async () => ({
    posthorn: await readTreeSeconds(posthorn.pid),
    postgres: await readTreeSeconds(postmaster),
    wal: await readWalBytes(postgres),
  });
  const before = await read();
  const load = await runLoad(posthorn, { connections: clients, events, types, bytes: PAYLOAD_BYTES });
  if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
  await waitUntilSettled(postgres, 60);
  const after = await read();
  const posthornUs = ((after.posthorn - before.posthorn) * 1e6) / load.accepted;
  const postgresUs = ((after.postgres - before.postgres) * 1e6) / load.accepted;
  return {
    perSecond: load.accepted / load.seconds,
    posthornUs,
    postgresUs,
    ratio: (posthornUs + postgresUs) / bare.cpuUsPerRequest,
    walBytes: (after.wal - before.wal) / load.accepted,
  };
}

async function measureRates(context: BenchContext, posthorn: Posthorn, types: string[]): Promise<Figure[]> {
  const { postgres, receiver, runs, quick, onProgress } = context;
  const figures: Figure[] = [];
  for (const rate of RATES) {
    onProgress(`${rate} a second`);
    const p50: number[] = [];
    const p99: number[] = [];
    for (let round = 0; round < runs; round += 1) {
      receiver.recordLatencies(true);
      await runLoad(posthorn, { rate, seconds: quick ? 3 : 15, types, bytes: PAYLOAD_BYTES });
      await waitUntilSettled(postgres, 30);
      const latencies = await receiver.takeLatencies();
      receiver.recordLatencies(false);
      p50.push(percentile(latencies, 0.5));
      p99.push(percentile(latencies, 0.99));
    }
    figures.push(
      { name: `${rate}/s: posted → received p50`, value: median(p50), unit: 'ms' },
      { name: `${rate}/s: posted → received p99`, value: median(p99), unit: 'ms' },
      {
        name: `${rate}/s: p99 over p50`,
        value: median(p99.map((value, round) => value / p50[round]!)),
        unit: '×',
        better: 'lower',
        goal: { atMost: 5 },
      },
    );
  }
  return figures;
}

async function measureDisk(context: BenchContext, posthorn: Posthorn, types: string[]): Promise<Figure[]> {
  const { postgres, quick, onProgress } = context;
  onProgress('disk');
  const before = await readDiskBytes(postgres);
  const load = await runLoad(posthorn, { events: quick ? 5_000 : 50_000, types, bytes: PAYLOAD_BYTES });
  await waitUntilSettled(postgres, 60);
  const after = await readDiskBytes(postgres);
  const figures: Figure[] = [];
  let total = 0;
  for (const [kind, bytes] of after) {
    const perEvent = (bytes - (before.get(kind) ?? 0)) / load.accepted;
    total += perEvent;
    figures.push({ name: `disk per event: ${kind}`, value: perEvent, unit: 'B' });
  }
  return [
    ...figures,
    {
      name: 'disk per event',
      value: total,
      unit: 'B',
      id: 'cost_disk',
      better: 'lower',
      goal: { atMost: 700 },
    },
  ];
}

/** Returns the bytes of each history table with its indexes and partitions. */
async function readDiskBytes(postgres: Postgres): Promise<Map<string, number>> {
  const rows = await postgres.query<{ kind: string; bytes: string }>(
    `select kind, (select sum(pg_total_relation_size(relid)) from pg_partition_tree(('posthorn.' || kind)::regclass)) as bytes
       from unnest(array['events', 'deliveries', 'attempts']) as kind`,
  );
  return new Map(rows.map(({ kind, bytes }) => [kind, Number(bytes)]));
}

async function readWalBytes(postgres: Postgres): Promise<number> {
  const [row] = await postgres.query<{ bytes: string }>(
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as bytes`,
  );
  return Number(row!.bytes);
}

async function measureIdleNode(
  { postgres, onProgress }: BenchContext,
  posthorn: Posthorn,
): Promise<Figure[]> {
  onProgress(`idle with ${IDLE_ENDPOINTS} endpoints`);
  await createEndpoints(postgres, 0, IDLE_ENDPOINTS);
  // The node opens the lanes of the new endpoints first, and sweeps them for 30 seconds after the last event.
  await new Promise((resolve) => setTimeout(resolve, 45_000));
  const idle = await measureIdle(postgres, posthorn.pid);
  return [
    {
      name: `idle with ${IDLE_ENDPOINTS} endpoints: Posthorn`,
      value: idle.posthorn * 100,
      unit: '% of a core',
      id: 'cost_idle',
      better: 'lower',
      goal: { atMost: 1 },
    },
    {
      name: `idle with ${IDLE_ENDPOINTS} endpoints: PostgreSQL`,
      value: idle.postgres * 100,
      unit: '% of a core',
      better: 'lower',
    },
  ];
}
