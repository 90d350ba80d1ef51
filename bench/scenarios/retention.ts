/**
 * Throughput while an expired partition is archived and dropped, compared with the same load before and after. And the memory of
 * the archive process, which must not grow with the partition. The rates are compared with each other, not with the bare loop: it
 * would compete with the archive process too.
 */
import { readFile, rm } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { openDirectory } from '../../scripts/open-directory.ts';
import { fillExpired } from '../fill-expired.ts';
import {
  computeRate,
  median,
  type Postgres,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';

const DATA_BYTES = 300;
const MAX_UNTIL_DROPPED_MS = 60 * 60_000;

export const retention: Bench = {
  name: 'retention',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const rows = quick ? 100_000 : 5_000_000;
    const events = quick ? 3_000 : 20_000;
    const folder = await openDirectory('posthorn-bench-archive-');
    try {
      onProgress('without');
      const before = await withPosthorn(postgres, {}, (posthorn) =>
        measureRounds(posthorn, postgres, receiver, { tenant: 'before', events, runs }),
      );
      const bytes = await measureBytesPerEvent(postgres);
      const table = await fillExpired(postgres.query, { rows, dataBytes: DATA_BYTES }, onProgress);
      onProgress(`while ${rows.toLocaleString('en')} rows are archived and dropped`);
      const env = {
        POSTHORN_RETENTION_EVENTS: '30',
        POSTHORN_ARCHIVE_URL: pathToFileURL(folder).href,
        POSTHORN_UPKEEP_MS: '1s',
      };
      const during = await withPosthorn(postgres, env, (posthorn) =>
        measureUntilDropped(posthorn, postgres, receiver, { table, events }),
      );
      onProgress('without, again');
      const after = await withPosthorn(postgres, {}, (posthorn) =>
        measureRounds(posthorn, postgres, receiver, { tenant: 'after', events, runs }),
      );
      const without = median([...before, ...after]);
      return [...figuresOf(rows, without, during), ...bytes];
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

interface During {
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly peakMb: number;
}

const figuresOf = (rows: number, without: number, { rates, seconds, peakMb }: During): Figure[] => [
  { name: 'without', value: without, unit: '/s' },
  {
    name: `while ${rows.toLocaleString('en')} rows are archived and dropped`,
    value: median(rates),
    unit: '/s',
  },
  {
    name: 'ratio',
    value: median(rates) / without,
    unit: '×',
    id: 'retention_ratio',
    goal: { atLeast: 0.85 },
    limit: { atLeast: 0.6 },
  },
  { name: 'until the partition is dropped', value: seconds, unit: 's' },
  {
    name: 'memory of the archive process, at most',
    value: peakMb,
    unit: 'MB',
    id: 'archive_memory_mb',
    goal: { atMost: 300 },
    limit: { atMost: 300 },
  },
];

async function withPosthorn<T>(
  postgres: Postgres,
  env: Record<string, string>,
  measure: (posthorn: Posthorn) => Promise<T>,
): Promise<T> {
  const posthorn = await startPosthorn(postgres, env);
  try {
    return await measure(posthorn);
  } finally {
    await posthorn.stop();
  }
}

interface Round {
  readonly tenant: string;
  readonly types: readonly string[];
  readonly events: number;
}

async function measureRate(
  posthorn: Posthorn,
  postgres: Postgres,
  { tenant, types, events }: Round,
): Promise<number> {
  const load = await runLoad(posthorn, {
    events,
    types: [...types],
    tenant,
    connections: 64,
    bytes: DATA_BYTES,
    isRandom: true,
  });
  await waitUntilSettled(postgres, 120);
  return computeRate(load);
}

async function measureRounds(
  posthorn: Posthorn,
  postgres: Postgres,
  receiver: Receiver,
  { tenant, events, runs }: { readonly tenant: string; readonly events: number; readonly runs: number },
): Promise<number[]> {
  const types = await registerEndpoints(posthorn, receiver, { count: 20, tenant });
  const round = { tenant, types, events };
  await measureRate(posthorn, postgres, round);
  const rates: number[] = [];
  for (let run = 0; run < runs; run += 1) rates.push(await measureRate(posthorn, postgres, round));
  return rates;
}

async function measureUntilDropped(
  posthorn: Posthorn,
  postgres: Postgres,
  receiver: Receiver,
  { table, events }: { readonly table: string; readonly events: number },
): Promise<During> {
  const startedAt = performance.now();
  let peakMb = 0;
  const sampling = setInterval(async () => {
    peakMb = Math.max(peakMb, await readChildrenPeakMb(posthorn.pid));
  }, 100);
  try {
    const types = await registerEndpoints(posthorn, receiver, { count: 20, tenant: 'during' });
    const rates: number[] = [];
    do {
      if (performance.now() - startedAt > MAX_UNTIL_DROPPED_MS)
        throw new Error(`${table} was not dropped within ${MAX_UNTIL_DROPPED_MS / 60_000} minutes.`);
      rates.push(await measureRate(posthorn, postgres, { tenant: 'during', types, events }));
    } while (await isWaiting(postgres, table));
    // The first round warms the process up.
    return {
      rates: rates.length > 2 ? rates.slice(1) : rates,
      seconds: (performance.now() - startedAt) / 1000,
      peakMb,
    };
  } finally {
    clearInterval(sampling);
  }
}

/** Whether the partition still exists. Throws if the archive cannot be written: then it would exist forever. */
async function isWaiting(postgres: Postgres, table: string): Promise<boolean> {
  const [row] = await postgres.query<{ found: boolean; error: string | null }>(
    'select exists (select from posthorn.partitions where name = $1) as found, (select error from posthorn.archive_state) as error',
    [table],
  );
  if (row!.error !== null) throw new Error(`The archive failed: ${row!.error}`);
  return row!.found;
}

/** The most memory that a child of the process has used so far. */
async function readChildrenPeakMb(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  let peak = 0;
  for (const child of children.trim().split(/\s+/).filter(Boolean)) {
    const status = await readFile(`/proc/${child}/status`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  }
  return peak;
}

/** What one delivered event takes on the disk, by table, for the table itself and for its indexes. */
async function measureBytesPerEvent(postgres: Postgres): Promise<Figure[]> {
  await postgres.query('vacuum (analyze) posthorn.events, posthorn.deliveries, posthorn.attempts');
  const sizes = await postgres.query<{ name: string; rows: number; bytes: number; index_bytes: number }>(
    `select p.parent as name, sum(c.reltuples)::float8 as rows, sum(pg_table_size(c.oid))::float8 as bytes,
            sum(pg_indexes_size(c.oid))::float8 as index_bytes
       from posthorn.partitions p join pg_class c on c.oid = format('posthorn.%I', p.name)::regclass
      where c.reltuples > 0 group by p.parent order by p.parent`,
  );
  const events = sizes.find(({ name }) => name === 'events')!.rows;
  const figures = sizes.flatMap(({ name, bytes, index_bytes }) => [
    { name: `${name}, per event`, value: bytes / events, unit: 'B' },
    { name: `indexes of ${name}, per event`, value: index_bytes / events, unit: 'B' },
  ]);
  const total = figures.reduce((sum, { value }) => sum + value, 0);
  return [...figures, { name: 'a delivered event', value: total, unit: 'B', id: 'bytes_per_event' }];
}
