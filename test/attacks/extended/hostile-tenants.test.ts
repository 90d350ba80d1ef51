/**
 * What a tenant can do with its own endpoints, on virtual time with the real accept stage and the real engine. Beside each
 * attack, another endpoint of the same worker gets an event every 200 ms. It must get each within a second, and all rules
 * of the simulation hold (limits, order, one probe at a time, nothing lost).
 */
import { describe, expect, test } from 'vitest';
import type { EndpointConfig } from '../../../src/domain/endpoint-config.ts';
import type { SimulatedProcess } from '../../simulation/simulated-process.ts';
import { type Behaviour, World } from '../../simulation/world.ts';

interface Attack {
  readonly config: EndpointConfig;
  readonly behaviour: Behaviour;
  /** How many endpoints attack. */
  readonly endpoints?: number;
  /** Events for all of them at the beginning, and every 200 ms. */
  readonly backlog?: number;
  readonly perTick?: number;
  /** What else the tenant does every 200 ms. */
  readonly each?: (world: World, ids: readonly string[], worker: SimulatedProcess, tick: number) => void;
}

const never: Behaviour = () => ({ status: null, afterMs: 0 });
const answer =
  (status: number, afterMs = 20, retryAfterMs?: number): Behaviour =>
  () => ({ status, afterMs, ...(retryAfterMs !== undefined && { retryAfterMs }) });
const NO_BREAKER = { breaker: null };
const AT_ONCE = { retry: { schedule: Array.from({ length: 20 }, () => 0), jitter: 'none' as const } };

const ATTACKS: Readonly<Record<string, Attack>> = {
  'an endpoint never answers, with 500 deliveries': { config: {}, behaviour: never, backlog: 500 },
  'an endpoint without a breaker never answers': { config: NO_BREAKER, behaviour: never, backlog: 200 },
  '200 endpoints with one request in flight never answer': {
    config: { ...NO_BREAKER, max_in_flight: 1 },
    behaviour: never,
    endpoints: 200,
    backlog: 2,
  },
  '200 endpoints never answer, and each may have ten requests in flight': {
    config: NO_BREAKER,
    behaviour: never,
    endpoints: 200,
    backlog: 2,
  },
  'an endpoint with 1,000 requests in flight never answers': {
    config: { ...NO_BREAKER, max_in_flight: 1_000 },
    behaviour: never,
    backlog: 500,
  },
  '100 endpoints answer 200 after 14 seconds': {
    config: {},
    behaviour: answer(200, 14_000),
    endpoints: 100,
    backlog: 5,
  },
  '20 endpoints answer 200 after 14 seconds': {
    config: {},
    behaviour: answer(200, 14_000),
    endpoints: 20,
    backlog: 20,
  },
  'an endpoint answers 200 after 14 seconds and gets 50 events per second': {
    config: {},
    behaviour: answer(200, 14_000),
    perTick: 10,
  },
  'an endpoint answers 500 at once and retries without delay': {
    config: { ...NO_BREAKER, ...AT_ONCE },
    behaviour: answer(500, 1),
    backlog: 200,
  },
  '50 endpoints answer 500 at once and retry without delay': {
    config: { ...NO_BREAKER, ...AT_ONCE },
    behaviour: answer(500, 1),
    endpoints: 50,
    backlog: 10,
  },
  'an endpoint answers 429 without Retry-After': { config: AT_ONCE, behaviour: answer(429, 1), backlog: 200 },
  'an endpoint answers 429 with a Retry-After of 1 ms': {
    config: AT_ONCE,
    behaviour: answer(429, 1, 1),
    backlog: 200,
  },
  'an endpoint answers 429 with a Retry-After of a year': {
    config: {},
    behaviour: answer(429, 1, 31_536_000_000),
    backlog: 200,
  },
  'an endpoint rejects everything with 404': { config: {}, behaviour: answer(404, 1), perTick: 20 },
  'an endpoint answers 410 to everything': { config: {}, behaviour: answer(410, 1), perTick: 20 },
  'an endpoint fails every second time': {
    config: AT_ONCE,
    behaviour: (now) => ({ status: Math.floor(now) % 2 === 0 ? 200 : 503, afterMs: 5 }),
    perTick: 10,
  },
  'an endpoint fails in alternate seconds': {
    config: { breaker: { consecutive: 1, cooldown_seconds: 0.05 }, ...AT_ONCE },
    behaviour: (now) => ({ status: Math.floor(now / 1_000) % 2 === 0 ? 200 : 503, afterMs: 5 }),
    perTick: 10,
  },
  'an endpoint has a cooldown of one millisecond': {
    config: { breaker: { consecutive: 1, cooldown_seconds: 0.001, max_cooldown_seconds: 0.001 }, ...AT_ONCE },
    behaviour: answer(503, 1),
    backlog: 200,
  },
  'an endpoint allows one request in a quarter of an hour, with 500 deliveries': {
    config: { rate_limit: { per_second: 0.001, burst: 1 } },
    behaviour: answer(200),
    backlog: 500,
  },
  'an endpoint allows 100,000 requests per second, with 1,000 deliveries': {
    config: { rate_limit: { per_second: 100_000, burst: 100_000 } },
    behaviour: answer(200, 500),
    backlog: 1_000,
  },
  'a FIFO endpoint fails at its head, with 500 deliveries behind': {
    config: { ordering: 'fifo' },
    behaviour: answer(503),
    backlog: 500,
  },
  'a FIFO endpoint blocks on a dead letter, with 500 deliveries behind': {
    config: { ordering: 'fifo', fifo_on_dead: 'block' },
    behaviour: answer(404),
    backlog: 500,
  },
  '100 FIFO endpoints never answer': {
    config: { ordering: 'fifo', ...NO_BREAKER },
    behaviour: never,
    endpoints: 100,
    backlog: 5,
  },
  'an endpoint is paused and resumed all the time': {
    config: {},
    behaviour: answer(200),
    perTick: 5,
    each: (world, [id], _, tick) => world.change(id!, { paused: tick % 2 === 0 }),
  },
  'an endpoint is disabled and enabled all the time': {
    config: {},
    behaviour: answer(200),
    perTick: 5,
    each: (world, [id], _, tick) => (tick % 2 === 0 ? world.disable(id!) : world.enable(id!)),
  },
  'an endpoint changes between FIFO and no order all the time': {
    config: {},
    behaviour: answer(503),
    perTick: 5,
    each: (world, [id], _, tick) => world.change(id!, { ordering: tick % 2 === 0 ? 'fifo' : 'none' }),
  },
  '100 endpoints change their limits all the time': {
    config: {},
    behaviour: answer(200),
    endpoints: 100,
    perTick: 1,
    each: (world, ids, _, tick) => {
      for (const id of ids) world.change(id, { maxInFlight: 1 + (tick % 50) });
    },
  },
  'probes are requested all the time while the circuit is open': {
    config: { breaker: { consecutive: 1 } },
    behaviour: answer(503),
    backlog: 50,
    each: (_world, [id], worker) =>
      void worker.queue.requestProbe(id!).then(() => worker.notifier.publish('probes', [null])),
  },
  'probes of 100 endpoints that never answer are requested all the time': {
    config: { breaker: { consecutive: 1 } },
    behaviour: never,
    endpoints: 100,
    backlog: 1,
    each: (_world, ids, worker) => {
      for (const id of ids)
        void worker.queue.requestProbe(id).then(() => worker.notifier.publish('probes', [null]));
    },
  },
  'all deliveries are replayed all the time': {
    config: NO_BREAKER,
    behaviour: answer(503),
    backlog: 50,
    each: (world, [id], worker) => {
      const deliveries = world.store.queue.of(id!).map((row) => ({ id: row.id, endpointId: id! }));
      void worker.queue
        .replay(deliveries)
        .then(() => worker.notifier.publish('wake', [{ endpointIds: [id!], scope: 'recent' }]));
    },
  },
  'one event goes to 100 endpoints, again and again': {
    config: {},
    behaviour: answer(200),
    endpoints: 100,
    each: (world, ids, worker) => void world.publish(ids, worker),
  },
};

const TICK_MS = 200;
const TICKS = 60;

async function measure({ config, behaviour, endpoints = 1, backlog = 0, perTick = 0, each }: Attack) {
  const world = new World(1, { limits: { maxSockets: 300, laneItems: 50, laneBudgetItems: 2_000 } });
  const victim = world.addEndpoint({}, answer(200));
  const ids = Array.from({ length: endpoints }, () => world.addEndpoint(config, behaviour).id);
  const worker = await world.addProcess();
  await world.run(2_000);
  world.publish([victim.id], worker);
  await world.run(500);
  for (let n = 0; n < backlog; n += 1) for (const id of ids) world.publish([id], worker);
  await world.run(1_000);
  const sent = [];
  for (let tick = 0; tick < TICKS; tick += 1) {
    sent.push(world.publish([victim.id], worker));
    for (let n = 0; n < perTick; n += 1) for (const id of ids) world.publish([id], worker);
    await world.time.inside(worker.process, () => each?.(world, ids, worker, tick));
    await world.run(TICK_MS);
  }
  await world.run(2_000);
  return Math.max(
    ...sent.map(({ deliveryId }) => {
      const startedAt = world.firstStart.get(deliveryId) ?? Number.POSITIVE_INFINITY;
      return startedAt - world.accepted.get(deliveryId)!.at;
    }),
  );
}

describe('a hostile tenant does not delay the others', () => {
  test.each(Object.entries(ATTACKS))('%s', async (_, attack) => {
    expect(await measure(attack)).toBeLessThan(1_000);
  });
});
