/**
 * What counting costs: processor time of the server per event (accepted, delivered, settled), metrics on and off. Two
 * servers, each on a database of its own, take turns; what counts is the difference within a pair.
 */
import { readFileSync } from 'node:fs';
import {
  median,
  newDatabase,
  type Postgres,
  type Posthorn,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench, BenchContext, Figure } from '../scenario.ts';

const TICKS_PER_SECOND = 100;
const SCRAPES = 200;

/** User and system time of a process so far, in microseconds. Linux only. */
function cpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may have blanks: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1e6) / TICKS_PER_SECOND;
}

interface Side {
  readonly posthorn: Posthorn;
  readonly postgres: Postgres;
  readonly types: string[];
}

async function startSide(context: BenchContext, metrics: 'on' | 'off'): Promise<Side> {
  const postgres = await newDatabase(context.postgres, `metrics_${metrics}`);
  const posthorn = await startPosthorn(postgres, { POSTHORN_METRICS: metrics });
  const types = await registerEndpoints(posthorn, context.receiver, { count: 50 });
  return { posthorn, postgres, types };
}

async function microsPerEvent({ posthorn, postgres, types }: Side, events: number): Promise<number> {
  const before = cpuMicros(posthorn.pids[0]!);
  const load = await runLoad(posthorn, { events, types, connections: 128 });
  if (load.refused > 0) throw new Error(`${load.refused} events were refused`);
  await untilSettled(postgres, 120);
  return (cpuMicros(posthorn.pids[0]!) - before) / events;
}

async function microsPerScrape({ posthorn }: Side): Promise<number> {
  const before = cpuMicros(posthorn.pids[0]!);
  for (let n = 0; n < SCRAPES; n += 1)
    await (await fetch(`http://127.0.0.1:${posthorn.port}/metrics`)).text();
  return (cpuMicros(posthorn.pids[0]!) - before) / SCRAPES;
}

export const metrics: Bench = {
  name: 'metrics',
  async run(context) {
    const { runs, quick, progress } = context;
    const events = quick ? 2_000 : 20_000;
    const [on, off] = [await startSide(context, 'on'), await startSide(context, 'off')];
    try {
      // The compiler needs some ten thousand rounds to be done with the hot path.
      for (const side of [on, off, on, off]) await microsPerEvent(side, events);
      const pairs: { on: number; off: number }[] = [];
      for (let run = 0; run < runs; run += 1) {
        progress(`pair ${run + 1} of ${runs}`);
        // Whoever comes second finds warmer or busier surroundings: they take turns at that too.
        const first = run % 2 === 0 ? await microsPerEvent(on, events) : null;
        const withoutMetrics = await microsPerEvent(off, events);
        pairs.push({ on: first ?? (await microsPerEvent(on, events)), off: withoutMetrics });
      }
      return figuresOf(pairs, await microsPerScrape(on));
    } finally {
      for (const { posthorn, postgres } of [on, off]) {
        await posthorn.stop();
        await postgres.stop();
      }
    }
  },
};

function figuresOf(pairs: readonly { on: number; off: number }[], perScrape: number): Figure[] {
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
