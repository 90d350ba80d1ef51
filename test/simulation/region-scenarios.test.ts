/** Regions on virtual time: which workers send, how a lane moves, and what happens without workers. */
import { describe, expect, it } from 'vitest';
import type { SimulatedProcess } from './simulated-process.ts';
import { type Answer, type Behaviour, World } from './world.ts';

const OK: Answer = { status: 200, afterMs: 20 };
const FALLBACK_MS = 5_000;

/** A receiver that records which process called it, and when. */
function recordSenders(world: World, answer: Behaviour = () => OK) {
  const calls: { readonly by: string; readonly at: number }[] = [];
  const behaviour: Behaviour = (now, request) => {
    const owner = world.store.ownerOf(request.endpoint.id);
    const by = world.processes.find(({ workerId }) => workerId === owner)?.process.name ?? 'nobody';
    calls.push({ by, at: now });
    return answer(now, request);
  };
  return { calls, behaviour };
}

const addWorker = (world: World, region: string | null, limits = {}): Promise<SimulatedProcess> =>
  world.addProcess({ limits: { region, ...limits } });

describe('SCL-5: an endpoint that names a region', () => {
  it('gets requests from workers of this region only, whichever process accepts the event', async () => {
    for (const isOneNode of [false, true]) {
      const world = new World(1, { isOneNode });
      const [eu, home] = [recordSenders(world), recordSenders(world)];
      const endpoints = [
        world.addEndpoint({ region: 'eu' }, eu.behaviour, 7),
        world.addEndpoint({}, home.behaviour, 7),
      ];
      const [first, second] = [await addWorker(world, null), await addWorker(world, 'eu')];
      await world.run(3_000);
      for (const process of [first, second])
        for (const { id } of endpoints) {
          const publication = world.publish([id], process);
          await world.run(200);
          expect(
            world.firstStart.get(publication.deliveryId)! - world.accepted.get(publication.deliveryId)!.at,
          ).toBeLessThan(30);
        }
      expect(eu.calls.map(({ by }) => by)).toEqual([second.process.name, second.process.name]);
      expect(home.calls.map(({ by }) => by)).toEqual([first.process.name, first.process.name]);
      await world.run(10_000);
      world.checkEnd();
      expect(world.duplicates).toBe(0);
    }
  });

  it('is handed over when it changes: within a second, without a duplicate and without a pause for its events', async () => {
    const world = new World(2);
    const { calls, behaviour } = recordSenders(world);
    const { id } = world.addEndpoint({}, behaviour);
    const [home, eu] = [await addWorker(world, null), await addWorker(world, 'eu')];
    await world.run(3_000);
    for (let i = 0; i < 60; i += 1) {
      if (i === 20) world.store.changeRegion(id, 'eu');
      world.publish([id], i % 2 === 0 ? home : eu);
      await world.run(50);
    }
    await world.run(5_000);
    world.checkEnd();
    expect(world.duplicates).toBe(0);
    expect(calls).toHaveLength(60);
    const senders = calls.map(({ by }) => by);
    const moved = senders.indexOf(eu.process.name);
    expect(new Set(senders.slice(0, moved))).toEqual(new Set([home.process.name]));
    expect(new Set(senders.slice(moved))).toEqual(new Set([eu.process.name]));
    const pauses = calls.slice(1).map(({ at }, index) => at - calls[index]!.at);
    expect(Math.max(...pauses)).toBeLessThan(1_500);
  });

  it('FIFO: the new owner waits for the deadline of the request that the old one has on the wire', async () => {
    const world = new World(3);
    const { calls, behaviour } = recordSenders(world, (now) =>
      now < 10_000 ? { status: null, afterMs: 0 } : OK,
    );
    const { id } = world.addEndpoint({ ordering: 'fifo', timeout_ms: 8_000 }, behaviour);
    const [home, eu] = [await addWorker(world, null), await addWorker(world, 'eu')];
    await world.run(3_000);
    for (let i = 0; i < 3; i += 1) world.publish([id], home);
    await world.run(500);
    world.store.changeRegion(id, 'eu');
    await world.run(60_000);
    world.checkEnd();
    // request-checks.ts fails the test if two requests of a FIFO endpoint are on the wire at once.
    expect(calls.map(({ by }) => by)).toEqual([home, eu, eu, eu].map(({ process }) => process.name));
    expect(calls[1]!.at - calls[0]!.at).toBeGreaterThanOrEqual(8_000);
  });

  it('an open circuit: there is one probe at a time while the lane moves back and forth', async () => {
    const world = new World(4);
    const breaker = { consecutive: 2, min_requests: 2, cooldown_seconds: 1, max_cooldown_seconds: 1 };
    const { behaviour } = recordSenders(world, (now) => (now < 40_000 ? { status: null, afterMs: 0 } : OK));
    const { id } = world.addEndpoint(
      { breaker, timeout_ms: 3_000, retry: { schedule: Array(20).fill(1) } },
      behaviour,
    );
    const [home] = [await addWorker(world, null), await addWorker(world, 'eu')];
    await world.run(3_000);
    for (let i = 0; i < 5; i += 1) world.publish([id], home);
    for (let i = 0; i < 12; i += 1) {
      await world.run(2_700);
      world.store.changeRegion(id, i % 2 === 0 ? 'eu' : null);
    }
    await world.run(120_000);
    world.checkEnd();
    expect(world.delivered.size).toBe(5);
  });

  it('stays with its owner if the region changes back at once', async () => {
    const world = new World(5);
    const { calls, behaviour } = recordSenders(world, () => ({ status: 200, afterMs: 700 }));
    const { id } = world.addEndpoint({ max_in_flight: 1 }, behaviour);
    const [home] = [await addWorker(world, null), await addWorker(world, 'eu')];
    await world.run(3_000);
    for (let i = 0; i < 5; i += 1) world.publish([id], home);
    await world.run(100);
    world.store.changeRegion(id, 'eu');
    await world.run(350);
    world.store.changeRegion(id, null);
    await world.run(10_000);
    world.checkEnd();
    expect(calls.map(({ by }) => by)).toEqual(Array(5).fill(home.process.name));
    expect(world.duplicates).toBe(0);
  });

  it('is taken over by the next owner, which moves the lane, if the old owner dies during the move', async () => {
    const world = new World(6);
    const { calls, behaviour } = recordSenders(world, (now) =>
      now < 4_000 ? { status: null, afterMs: 0 } : OK,
    );
    const { id } = world.addEndpoint({ timeout_ms: 5_000 }, behaviour);
    const home = await addWorker(world, null);
    await world.run(2_500);
    await addWorker(world, 'eu');
    await world.run(1_000);
    world.publish([id], home);
    await world.run(200);
    world.store.changeRegion(id, 'eu');
    await world.run(500);
    world.crash(home);
    await addWorker(world, null);
    await world.run(60_000);
    world.checkEnd();
    expect(calls.at(-1)!.by).toBe('worker-1');
    expect(world.delivered.size).toBe(1);
  });
});

describe('SCL-5: a worker that has not read the change of a region', () => {
  it('does not open the lane that an earlier owner of its shard has moved', async () => {
    const world = new World(10);
    const { calls, behaviour } = recordSenders(world);
    const { id } = world.addEndpoint({}, behaviour, 3);
    const [home, late, eu] = [
      await addWorker(world, null),
      await addWorker(world, null),
      await addWorker(world, 'eu'),
    ];
    await world.run(4_000);
    expect(world.store.ownerOf(id)).toBe(home.workerId);
    world.time.pause(late.process);
    world.store.changeRegion(id, 'eu');
    await world.run(1_000);
    expect(eu.engine.lanes.get(id)).toBeDefined();
    // From now on no process can read endpoints.
    world.weather.fault = (operation) => (operation === 'readChanges' ? 'unavailable' : 'none');
    world.time.resume(late.process);
    world.crash(home);
    await world.run(4_000);
    expect(late.engine.ownership.owns(3)).toBe(true);
    for (let i = 0; i < 5; i += 1) world.commitUnannounced([id]);
    // request-checks.ts fails the test if a worker sends that does not own the lane.
    await world.run(20_000);
    expect(late.engine.lanes.get(id)).toBeUndefined();
    expect(calls.map(({ by }) => by)).toEqual(Array(5).fill(eu.process.name));
    world.weather.fault = () => 'none';
    await world.run(10_000);
    world.checkEnd();
  });
});

describe('SCL-5: a region without workers', () => {
  it('keeps its deliveries, and another region can take an endpoint from it', async () => {
    const world = new World(7);
    const { calls, behaviour } = recordSenders(world);
    const endpoints = [0, 1].map(() => world.addEndpoint({ region: 'eu' }, behaviour));
    const home = await addWorker(world, null);
    await world.run(3_000);
    for (const { id } of endpoints) world.publish([id], home);
    await world.run(60_000);
    expect(calls).toEqual([]);
    world.store.changeRegion(endpoints[0]!.id, null);
    await world.run(3_000);
    expect(calls.map(({ by }) => by)).toEqual([home.process.name]);
    const eu = await addWorker(world, 'eu');
    await world.run(3_000);
    expect(calls.map(({ by }) => by)).toEqual([home.process.name, eu.process.name]);
    await world.run(10_000);
    world.checkEnd();
  });

  it('is served by the default region after the configured time, and gets its lanes back when it has a worker', async () => {
    const world = new World(8);
    const { calls, behaviour } = recordSenders(world);
    const { id } = world.addEndpoint({ region: 'eu' }, behaviour);
    const home = await addWorker(world, null, { regionFallbackAfterMs: FALLBACK_MS });
    const eu = await addWorker(world, 'eu');
    await world.run(3_000);
    await world.time.inside(eu.process, () => void eu.stop());
    await world.run(1_000);
    world.publish([id], home);
    await world.run(FALLBACK_MS - 1_500);
    expect(calls).toEqual([]);
    await world.run(2_000);
    expect(calls.map(({ by }) => by)).toEqual([home.process.name]);
    const back = await addWorker(world, 'eu');
    await world.run(3_000);
    expect(world.store.ownerOf(id)).toBe(back.workerId);
    expect(home.engine.ownership.shardCount).toBe(256);
    world.publish([id], home);
    await world.run(1_000);
    expect(calls.map(({ by }) => by)).toEqual([home.process.name, back.process.name]);
    await world.run(10_000);
    world.checkEnd();
    expect(world.duplicates).toBe(0);
  });
});

describe('SCL-6: a worker that is stopped by an autoscaler', () => {
  it('hands its shards over before it ends: nothing is sent twice, and nothing waits', async () => {
    const world = new World(9);
    const endpoints = Array.from({ length: 30 }, () =>
      world.addEndpoint({}, () => ({ status: 200, afterMs: 200 })),
    );
    const [stays, leaves] = [await world.addProcess(), await world.addProcess()];
    await world.run(4_000);
    expect(leaves.engine.ownership.shardCount).toBe(128);
    for (let i = 0; i < 100; i += 1) {
      if (i === 30) await world.time.inside(leaves.process, () => void leaves.stop());
      for (let n = 0; n < 3; n += 1) world.publish([world.random.pick(endpoints).id], stays);
      await world.run(20);
    }
    expect(stays.engine.ownership.shardCount).toBe(256);
    await world.run(10_000);
    world.checkEnd();
    expect(world.duplicates).toBe(0);
    for (const [id, { at }] of world.accepted) expect(world.firstStart.get(id)! - at).toBeLessThan(1_000);
  });
});
