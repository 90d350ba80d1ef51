/**
 * One endpoint with several events per second, on virtual time with the real engine: what a breaker does while requests fail
 * at random, and how many requests come at once when an outage ends.
 */
import type { EndpointConfig } from '../src/domain/endpoint-config.ts';
import type { Jitter } from '../src/domain/retry.ts';
import { type Answer, World } from '../test/simulation/world.ts';

export interface BusyTrial {
  readonly breaker: NonNullable<EndpointConfig['breaker']> | null;
  /** Default: that of the default schedule. */
  readonly jitter?: Jitter;
  /** The share of requests that fail, or "outage": all of them, during the first half. */
  readonly failing: number | 'outage';
  readonly eventsPerSecond: number;
  readonly minutes: number;
  readonly seed: number;
}

export interface BusyResult {
  readonly requests: number;
  /** Requests in each second of the second half. After an outage this is the recovery. */
  readonly recovery: readonly number[];
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

export async function runBusyEndpoint({
  breaker,
  jitter,
  failing,
  eventsPerSecond,
  minutes,
  seed,
}: BusyTrial): Promise<BusyResult> {
  const world = new World(seed, { limits: { laneItems: 200, laneBudgetItems: 10_000 } });
  const lengthMs = minutes * 60_000;
  const beganAt = world.time.now();
  const halfSecond = Math.floor(lengthMs / 2000);
  const isFailing = (): boolean =>
    failing === 'outage' ? world.time.now() - beganAt < lengthMs / 2 : world.random.chance(failing);
  const perSecond = new Map<number, number>();
  const endpoint = world.addEndpoint(
    { breaker, ...(jitter !== undefined && { retry: { jitter } }) },
    (now): Answer => {
      const second = Math.floor(now / 1000);
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
      return { status: isFailing() ? 503 : 200, afterMs: ANSWER_MS };
    },
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
  const recovery = Array.from({ length: halfSecond }, (_, second) => perSecond.get(halfSecond + second) ?? 0);
  return {
    requests: world.requests,
    recovery,
    throughput: deliveredAt.size / world.accepted.size,
    p50: percentile(0.5),
    p99: percentile(0.99),
    opened,
    openShare: openMs / lengthMs,
    longestOpen: longestMs / 1000,
  };
}
