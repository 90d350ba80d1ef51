/** Situations of processes and their store on virtual time, with the real accept stage and the real engine. */
import { describe, expect, it } from 'vitest';
import type { SimulatedProcess } from './simulated-process.ts';
import { type Answer, World } from './world.ts';

const OK: Answer = { status: 200, afterMs: 20 };
const ok = () => OK;

describe('an event', () => {
  it('is sent within milliseconds, whether the accepting process or another one owns its endpoint', async () => {
    const world = new World(1);
    const endpoints = Array.from({ length: 20 }, () => world.addEndpoint({}, ok));
    const first = await world.addProcess();
    await world.addProcess();
    await world.run(4_000);
    for (let i = 0; i < 50; i += 1) {
      world.publish([world.random.pick(endpoints).id], first);
      await world.run(50);
    }
    await world.run(1_000);
    world.checkEnd();
    for (const [id, { at }] of world.accepted) expect(world.firstStart.get(id)! - at).toBeLessThan(30);
  });

  it('is handed over to a sibling without a read of the store', async () => {
    const world = new World(1, { isOneNode: true });
    const endpoints = Array.from({ length: 20 }, () => world.addEndpoint({}, ok));
    const first = await world.addProcess();
    await world.addProcess();
    await world.run(4_000);
    const before = world.laneReads;
    for (let i = 0; i < 50; i += 1) world.publish([world.random.pick(endpoints).id], first);
    await world.run(4_000);
    expect(world.delivered.size).toBe(50);
    expect(world.laneReads - before).toBeLessThan(5);
    await world.run(10_000);
    world.checkEnd();
    expect(world.duplicates).toBe(0);
  });

  it('does not wait for a sweep if it is the first ever and another process accepted it', async () => {
    const world = new World(2);
    const endpoint = world.addEndpoint({}, ok);
    const workers = [await world.addProcess(), await world.addProcess()];
    await world.run(200_000);
    const owner = world.store.ownerOf(endpoint.id);
    const other = workers.find(({ workerId }) => workerId !== owner)!;
    const publication = world.publish([endpoint.id], other);
    await world.run(1_000);
    expect(world.delivered.has(publication.deliveryId)).toBe(true);
  });

  it('is found by a sweep if its notification is lost', async () => {
    const world = new World(3);
    const endpoint = world.addEndpoint({}, ok);
    await world.addProcess();
    await world.run(100_000);
    const { deliveryId } = world.commitUnannounced([endpoint.id]);
    await world.run(5_100);
    expect(world.delivered.has(deliveryId)).toBe(true);
  });

  it('is found by a full sweep if its commit took minutes and its notification is lost', async () => {
    const world = new World(4);
    const endpoint = world.addEndpoint({}, ok);
    await world.addProcess();
    await world.run(10_000);
    const { deliveryId } = world.commitUnannounced([endpoint.id], 120_000);
    await world.run(120_000 + 305_000);
    expect(world.delivered.has(deliveryId)).toBe(true);
  });
});

describe('an idle worker', () => {
  it.each(['none', 'fifo'] as const)('reads lanes only in its sweeps (ordering %s)', async (ordering) => {
    const world = new World(5);
    const endpoints = Array.from({ length: 10 }, () => world.addEndpoint({ ordering }, ok));
    const worker = await world.addProcess();
    await world.run(2_000);
    for (const { id } of endpoints) world.publish([id], worker);
    await world.run(3_000);
    world.checkEnd();
    const before = world.laneReads;
    await world.run(20_000);
    expect(world.laneReads - before).toBeLessThanOrEqual(2 * 5);
  });

  it('reads lanes only in its sweeps even if they are paused, hold retries or have an open circuit', async () => {
    const world = new World(6);
    const paused = world.addEndpoint({}, ok);
    const failing = world.addEndpoint({}, () => ({ status: 500, afterMs: 5 }));
    const retrying = world.addEndpoint({ breaker: null, retry: { schedule: [0, 3600, 3600] } }, () => ({
      status: 500,
      afterMs: 5,
    }));
    const worker = await world.addProcess();
    world.change(paused.id, { paused: true });
    await world.run(2_000);
    for (let i = 0; i < 100; i += 1) world.publish([paused.id, failing.id, retrying.id], worker);
    await world.run(20_000);
    const before = world.laneReads;
    await world.run(20_000);
    expect(world.laneReads - before).toBeLessThanOrEqual(2 * 5);
  });
});

describe('ownership', () => {
  it('recovers from lost answers: every shard is worked on by its owner', async () => {
    for (let seed = 0; seed < 15; seed += 1) {
      const world = new World(seed);
      const endpoints = Array.from({ length: 64 }, (_, i) => world.addEndpoint({}, ok, i * 4));
      const first = await world.addProcess();
      await world.run(world.random.between(0, 1_000));
      await world.addProcess();
      world.weather.fault = () => (world.random.chance(0.15) ? 'lost_answer' : 'none');
      await world.run(6_000);
      world.weather.fault = () => 'none';
      await world.run(20_000);
      for (const { id } of endpoints) world.publish([id], first);
      await world.run(5_500);
      world.checkEnd();
      for (const [shard, { owner }] of world.store.shards.entries()) {
        const works = world.processes.filter(({ engine }) => engine.ownership.owns(shard));
        expect(works.map(({ workerId }) => workerId)).toEqual([owner]);
      }
    }
  });

  it('moves to another worker without sending twice, even if recording results is slow', async () => {
    for (let seed = 0; seed < 12; seed += 1) {
      const world = new World(seed);
      const endpoints = Array.from({ length: 40 }, (_, i) =>
        world.addEndpoint(
          { timeout_ms: 5_000 },
          () => ({ status: 200, afterMs: world.random.between(1, 3_000) }),
          i * 6,
        ),
      );
      const first = await world.addProcess();
      await world.run(2_000);
      for (let i = 0; i < 3; i += 1) for (const { id } of endpoints) world.publish([id], first);
      await world.run(200);
      await world.addProcess();
      await world.run(400);
      const settle = world.random.between(800, 4_000);
      world.weather.latencyMs = () => (world.random.chance(0.3) ? settle : 2);
      await world.run(30_000);
      world.weather.latencyMs = () => 2;
      await world.run(30_000);
      world.checkEnd();
      expect(world.duplicates).toBe(0);
    }
  });

  it('DSP-2: moves to another worker within 2 s after a crash, and within 10 s after a pause', async () => {
    for (const [fault, limitMs] of [
      ['crash', 2_000],
      ['pause', 10_000],
    ] as const) {
      const world = new World(13);
      const endpoints = Array.from({ length: 32 }, (_, i) => world.addEndpoint({}, ok, i * 8));
      const first = await world.addProcess();
      await world.addProcess();
      await world.run(6_000);
      if (fault === 'crash') world.crash(first);
      else world.time.pause(first.process);
      const at = world.time.now();
      for (const { id } of endpoints) world.publish([id], world.processes[1]!);
      await world.run(limitMs);
      for (const id of world.accepted.keys()) expect(world.firstStart.get(id)! - at).toBeLessThan(limitMs);
      world.time.resume(first.process);
      await world.run(3_000);
      world.checkEnd();
      expect(world.requests).toBe(endpoints.length);
    }
  });
});

describe('FAN-4: a FIFO endpoint with batches', () => {
  it('gets nothing before the deadline of a batch that a crashed worker sent, though the events of the batch are gone', async () => {
    const timeoutMs = 20_000;
    const world = new World(21);
    const endpoint = world.addEndpoint(
      { ordering: 'fifo', timeout_ms: timeoutMs, batch: { max_events: 2, max_wait_ms: 0 } },
      (_, { number }) => ({ status: 200, afterMs: number === 1 ? timeoutMs - 1_000 : 20 }),
      0,
    );
    const workers = [await world.addProcess(), await world.addProcess()];
    await world.run(6_000);
    const owner = workers.find(({ workerId }) => workerId === world.store.ownerOf(endpoint.id))!;
    const other = workers.find((worker) => worker !== owner)!;
    const { deliveryId: gone } = await publishOne(world, endpoint.id, owner);
    world.crash(owner);
    for (const row of world.store.queue.of(endpoint.id)) world.store.queue.delete(row);
    const next = await publishOne(world, endpoint.id, other);
    await world.run(2 * timeoutMs);
    expect(world.firstStart.get(next.deliveryId)! - world.firstStart.get(gone)!).toBeGreaterThan(timeoutMs);
  });
});

describe('a slow store', () => {
  it('stops new requests at the limit of unrecorded results', async () => {
    const world = new World(16, { limits: { unsettledCap: 10 } });
    const endpoints = Array.from({ length: 20 }, () => world.addEndpoint({}, ok));
    const worker = await world.addProcess();
    await world.run(2_000);
    world.weather.latencyMs = () => 700;
    for (let i = 0; i < 10; i += 1) for (const { id } of endpoints) world.publish([id], worker);
    await world.run(500);
    // Requests that were on the wire when the limit was reached add to it.
    expect(worker.engine.stats.unsettled).toBeLessThanOrEqual(10 + 54);
    const { requests } = world;
    await world.run(150);
    expect(world.requests).toBe(requests);
    world.weather.latencyMs = () => 2;
    await world.run(20_000);
    world.checkEnd();
  });
});

describe('a store whose clock is wrong by 40 days', () => {
  const DAY_MS = 86_400_000;

  it.each([
    [40, 100],
    [-40, 100],
    [40, 60_000],
    [-40, 60_000],
  ])(
    '(%d, for %d ms) makes no dead letters, and holds nothing back when it is right again',
    async (days, forMs) => {
      const world = new World(7);
      let isDown = true;
      const failing = (): Answer => (isDown ? { status: 500, afterMs: 20 } : OK);
      const throttled = (): Answer => (isDown ? { status: 429, afterMs: 20, retryAfterMs: 2_000 } : OK);
      const retry = { schedule: [0, ...Array.from({ length: 60 }, () => 2)], jitter: 'none' as const };
      const breaker = { consecutive: 2, cooldown_seconds: 3, max_cooldown_seconds: 5 };
      const endpoints = [
        world.addEndpoint({ retry, breaker: null }, failing),
        world.addEndpoint({ retry, breaker }, failing),
        world.addEndpoint({ retry, breaker: null }, throttled),
        world.addEndpoint({ retry, breaker, ordering: 'fifo' }, failing),
        world.addEndpoint({ retry, breaker: null, batch: { max_events: 3, max_wait_ms: 200 } }, failing),
      ];
      const workers = [await world.addProcess(), await world.addProcess()];
      await world.run(10_000);
      for (const { id } of endpoints) world.publish([id], workers[0]!);
      await world.run(1_000);
      world.time.storeErrorMs = days * DAY_MS;
      await world.run(forMs);
      world.time.storeErrorMs = 0;
      await world.run(20_000);
      isDown = false;
      await world.run(30_000);
      world.checkEnd();
      expect([...world.store.deadLetters.values()]).toEqual([]);
      expect(world.delivered.size).toBe(endpoints.length);
      expect(world.duplicates).toBe(0);
    },
  );

  it('takes a replay that is requested meanwhile', async () => {
    const world = new World(8);
    const endpoint = world.addEndpoint({}, ok);
    const worker = await world.addProcess();
    await world.run(10_000);
    const { deliveryId } = await publishOne(world, endpoint.id, worker);
    for (const days of [-40, 40]) {
      world.time.storeErrorMs = days * DAY_MS;
      const replays = [{ id: deliveryId, endpointId: endpoint.id }];
      await world.time.inside(worker.process, () => void worker.queue.replay(replays, worker.clock.now()));
      await world.run(100);
      world.time.storeErrorMs = 0;
      const before = world.requests;
      await world.run(10_000);
      expect(world.requests).toBe(before + 1);
    }
    world.checkEnd();
  });
});

async function publishOne(world: World, endpointId: string, to: SimulatedProcess) {
  const publication = world.publish([endpointId], to);
  await world.run(1_000);
  return publication;
}
