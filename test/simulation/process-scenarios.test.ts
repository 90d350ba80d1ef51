/** Situations of processes and their store on virtual time, with the real accept stage and the real engine. */
import { describe, expect, it } from 'vitest';
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
