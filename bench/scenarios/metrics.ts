/**
 * The cost of metrics: CPU time of the server per event (accepted, delivered, settled) with metrics on and off. Two
 * servers, each with its own database, alternate; the result is the median difference within a pair.
 */
import { readFileSync } from 'node:fs';
import {
  createDatabase,
  median,
  type Postgres,
  type Posthorn,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench, BenchContext, Figure } from '../scenario.ts';

const TICKS_PER_SECOND = 100;
const SCRAPES = 200;

/** The user and system time of a process in microseconds. Linux only. */
function readCpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The process name in parentheses may contain spaces: split after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / TICKS_PER_SECOND;
}

interface Server {
  readonly posthorn: Posthorn;
  readonly postgres: Postgres;
  readonly types: string[];
}

async function startServer(context: BenchContext, metrics: 'on' | 'off'): Promise<Server> {
  const postgres = await createDatabase(context.postgres, `metrics_${metrics}`);
  const posthorn = await startPosthorn(postgres, { POSTHORN_METRICS: metrics });
  const types = await registerEndpoints(posthorn, context.receiver, { count: 50 });
  return { posthorn, postgres, types };
}

async function measureMicrosPerEvent({ posthorn, postgres, types }: Server, events: number): Promise<number> {
  const before = readCpuMicros(posthorn.pid);
  const load = await runLoad(posthorn, { events, types, connections: 128 });
  if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
  await waitUntilSettled(postgres, 120);
  return (readCpuMicros(posthorn.pid) - before) / events;
}

async function measureMicrosPerScrape({ posthorn }: Server): Promise<number> {
  const before = readCpuMicros(posthorn.pid);
  for (let n = 0; n < SCRAPES; n += 1)
    await (await fetch(`http://127.0.0.1:${posthorn.port}/metrics`)).text();
  return (readCpuMicros(posthorn.pid) - before) / SCRAPES;
}

export const metrics: Bench = {
  name: 'metrics',
  async run(context) {
    const { runs, quick, onProgress } = context;
    const events = quick ? 2_000 : 20_000;
    const [on, off] = [await startServer(context, 'on'), await startServer(context, 'off')];
    try {
      // Warm-up: V8 needs about ten thousand events to optimize the hot path.
      for (const server of [on, off, on, off]) await measureMicrosPerEvent(server, events);
      const pairs: { on: number; off: number }[] = [];
      for (let run = 0; run < runs; run += 1) {
        onProgress(`pair ${run + 1} of ${runs}`);
        // The second of a pair runs under other conditions, so they swap places in every run.
        const first = run % 2 === 0 ? await measureMicrosPerEvent(on, events) : null;
        const withoutMetrics = await measureMicrosPerEvent(off, events);
        pairs.push({ on: first ?? (await measureMicrosPerEvent(on, events)), off: withoutMetrics });
      }
      return toFigures(pairs, await measureMicrosPerScrape(on));
    } finally {
      for (const { posthorn, postgres } of [on, off]) {
        await posthorn.stop();
        await postgres.stop();
      }
    }
  },
};

function toFigures(pairs: readonly { on: number; off: number }[], perScrape: number): Figure[] {
  const without = median(pairs.map(({ off }) => off));
  return [
    { name: 'CPU per event, metrics off', value: without, unit: 'µs' },
    { name: 'CPU per event, metrics on', value: median(pairs.map(({ on }) => on)), unit: 'µs' },
    {
      name: 'median difference within a pair',
      value: (median(pairs.map(({ on, off }) => on - off)) / without) * 100,
      unit: '%',
      id: 'metrics_overhead_percent',
      goal: { atMost: 2 },
    },
    { name: 'CPU per scrape', value: perScrape, unit: 'µs' },
  ];
}
