/**
 * Measures what a breaker does to an endpoint whose requests fail at random, on virtual time with the real engine. Run it
 * with `npm run breaker-lab`. The table in docs/adr/0018-breaker-cooldown.md comes from it.
 */
import { pathToFileURL } from 'node:url';
import type { EndpointConfig } from '../src/domain/endpoint-config.ts';
import { type Answer, World } from '../test/simulation/world.ts';

export interface Trial {
  readonly breaker: NonNullable<EndpointConfig['breaker']> | null;
  /** The share of requests that fail, or "outage": all of them, during the first half. */
  readonly failing: number | 'outage';
  readonly eventsPerSecond: number;
  readonly minutes: number;
  readonly seed: number;
}

export interface TrialResult {
  readonly requests: number;
  /** Deliveries per second during the trial, over events per second. */
  readonly throughput: number;
  /** Seconds from acceptance to delivery. A delivery that is still waiting counts with the time that it has waited. */
  readonly p50: number;
  readonly p99: number;
  /** How often the circuit opened, the share of the time in which it was not closed, and the longest such time in seconds. */
  readonly opened: number;
  readonly openShare: number;
  readonly longestOpen: number;
}

const STEP_MS = 100;
const ANSWER_MS = 50;

export async function runTrial({
  breaker,
  failing,
  eventsPerSecond,
  minutes,
  seed,
}: Trial): Promise<TrialResult> {
  const world = new World(seed, { limits: { laneItems: 200, laneBudgetItems: 10_000 } });
  const lengthMs = minutes * 60_000;
  const beganAt = world.time.now();
  const isFailing = (): boolean =>
    failing === 'outage' ? world.time.now() - beganAt < lengthMs / 2 : world.random.chance(failing);
  const endpoint = world.addEndpoint(
    { breaker },
    (): Answer => ({ status: isFailing() ? 503 : 200, afterMs: ANSWER_MS }),
  );
  const worker = await world.addProcess();
  await world.run(2_000);
  const deliveredAt = new Map<string, number>();
  const add = world.delivered.add.bind(world.delivered);
  world.delivered.add = (id) => {
    if (!deliveredAt.has(id)) deliveredAt.set(id, world.time.now());
    return add(id);
  };

  const startedAt = world.time.now();
  let [credit, opened, openMs, currentMs, longestMs] = [0, 0, 0, 0, 0];
  while (world.time.now() - startedAt < lengthMs) {
    for (credit += (eventsPerSecond * STEP_MS) / 1000; credit >= 1; credit -= 1)
      world.publish([endpoint.id], worker);
    await world.run(STEP_MS);
    const isOpen = worker.engine.lanes.get(endpoint.id)?.breaker.allowsTraffic === false;
    if (isOpen && currentMs === 0) opened += 1;
    currentMs = isOpen ? currentMs + STEP_MS : 0;
    if (isOpen) openMs += STEP_MS;
    longestMs = Math.max(longestMs, currentMs);
  }
  const endedAt = world.time.now();
  const waits = [...world.accepted]
    .map(([id, { at }]) => ((deliveredAt.get(id) ?? endedAt) - at) / 1000)
    .sort((a, b) => a - b);
  const percentile = (share: number): number => waits[Math.floor((waits.length - 1) * share)] ?? 0;
  return {
    requests: world.requests,
    throughput: deliveredAt.size / world.accepted.size,
    p50: percentile(0.5),
    p99: percentile(0.99),
    opened,
    openShare: openMs / lengthMs,
    longestOpen: longestMs / 1000,
  };
}

/** Candidates for the defaults, as they are written in the configuration of an endpoint. */
const CANDIDATES: Readonly<Record<string, Trial['breaker']>> = {
  none: null,
  'before (5, 50 %, 300 s)': { consecutive: 5, failure_rate: 0.5, cooldown_seconds: 300 },
  '5, 50 %, 30 s': { consecutive: 5, failure_rate: 0.5, cooldown_seconds: 30 },
  '10, 50 %, 30 s': { consecutive: 10, failure_rate: 0.5, cooldown_seconds: 30 },
  '10, 80 %, 30 s': { consecutive: 10, failure_rate: 0.8, cooldown_seconds: 30 },
  '20, 80 %, 30 s': { consecutive: 20, failure_rate: 0.8, cooldown_seconds: 30 },
};

async function main(): Promise<void> {
  const minutes = Number(process.env.MINUTES ?? 120);
  const eventsPerSecond = Number(process.env.RATE ?? 2);
  console.log(`${minutes} virtual minutes, ${eventsPerSecond} events/s, answers after ${ANSWER_MS} ms`);
  console.log(
    '| failing | breaker | delivered | p50 | p99 | requests saved | opened | time open | longest |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|');
  for (const failing of [0.01, 0.05, 0.2, 0.5, 'outage'] as const) {
    let without = 0;
    for (const [name, breaker] of Object.entries(CANDIDATES)) {
      const result = await runTrial({ breaker, failing, eventsPerSecond, minutes, seed: 1 });
      if (breaker === null) without = result.requests;
      const cells = [
        typeof failing === 'number' ? `${failing * 100} %` : failing,
        name,
        `${(result.throughput * 100).toFixed(1)} %`,
        `${result.p50.toFixed(2)} s`,
        `${result.p99.toFixed(1)} s`,
        `${((1 - result.requests / without) * 100).toFixed(1)} %`,
        result.opened,
        `${(result.openShare * 100).toFixed(1)} %`,
        `${result.longestOpen.toFixed(0)} s`,
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
