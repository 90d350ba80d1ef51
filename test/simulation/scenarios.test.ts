/** Single situations, played through on virtual time with the real accept stage and the real engine. */
import { describe, expect, it } from 'vitest';
import { timeOfId } from '../../src/domain/ids.ts';
import type { Publication } from './publication.ts';
import { type Answer, World } from './world.ts';

const OK: Answer = { status: 200, afterMs: 20 };
const ok = () => OK;

describe('an event', () => {
  it('is sent within milliseconds by the process that accepted it, and by another', async () => {
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

  it('is handed to the process beside it without a read', async () => {
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

  it('that is the first ever, accepted by another process, does not wait for a sweep', async () => {
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

  it('whose wake-up is lost is found by the sweep', async () => {
    const world = new World(3);
    const endpoint = world.addEndpoint({}, ok);
    await world.addProcess();
    await world.run(100_000);
    const { deliveryId } = world.commitUnannounced([endpoint.id]);
    await world.run(5_100);
    expect(world.delivered.has(deliveryId)).toBe(true);
  });

  it('whose commit took minutes, and whose wake-up is lost, is found by the sweep of everything', async () => {
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
  it.each(['none', 'fifo'] as const)(
    'reads nothing but what its sweeps ask for (ordering %s)',
    async (ordering) => {
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
    },
  );

  it('reads nothing more for lanes that are paused, hold retries or have their circuit open', async () => {
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

describe('an endpoint', () => {
  it('that is switched off and on again while its request is on the wire is not sent it twice', async () => {
    const world = new World(7);
    const endpoint = world.addEndpoint({}, () => ({ status: 200, afterMs: 10_000 }));
    const worker = await world.addProcess();
    await world.run(2_000);
    world.publish([endpoint.id], worker);
    await world.run(1_000);
    world.disable(endpoint.id);
    await world.run(1_000);
    world.enable(endpoint.id);
    await world.run(20_000);
    world.checkEnd();
    expect(world.requests).toBe(1);
  });

  it('that is switched off gets nothing more, and what waits is skipped, whatever happens at that moment', async () => {
    for (let seed = 0; seed < 10; seed += 1) {
      const world = new World(seed);
      const endpoint = world.addEndpoint({ retry: { schedule: [0, 5, 5] }, breaker: null }, () => ({
        status: 500,
        afterMs: world.random.between(5, 400),
      }));
      const worker = await world.addProcess();
      await world.run(2_000);
      world.change(endpoint.id, { paused: true });
      for (let i = 0; i < 30; i += 1) world.publish([endpoint.id], worker);
      // Long enough for the janitor to look at it for old ones.
      await world.run(world.random.between(1_000, 6_000));
      world.change(endpoint.id, { paused: false });
      await world.run(world.random.between(300, 900));
      // Accepted before it was switched off, committed after.
      world.commitUnannounced([endpoint.id], 700);
      world.disable(endpoint.id);
      await world.run(310_000);
      world.checkEnd();
    }
  });

  it('whose skipping fails because the database is away is skipped later', async () => {
    const world = new World(8);
    const endpoint = world.addEndpoint({}, ok);
    const worker = await world.addProcess();
    world.change(endpoint.id, { paused: true });
    await world.run(2_000);
    for (let i = 0; i < 5; i += 1) world.publish([endpoint.id], worker);
    await world.run(1_000);
    world.disable(endpoint.id);
    await world.run(290);
    world.weather.fault = () => 'lost_request';
    await world.run(5_000);
    world.weather.fault = () => 'none';
    await world.run(310_000);
    world.checkEnd();
  });

  it('is worked carefully after crashes, and as usual again when there were none for a while', async () => {
    const world = new World(12);
    const endpoint = world.addEndpoint({ max_in_flight: 10 }, () => ({ status: 200, afterMs: 1_000 }));
    for (let crashes = 0; crashes < 3; crashes += 1) {
      const worker = await world.addProcess();
      await world.run(2_000);
      world.crash(worker);
    }
    const worker = await world.addProcess();
    await world.run(3_000);
    const secondsForTen = async (): Promise<number> => {
      const posted = Array.from({ length: 10 }, () => world.publish([endpoint.id], worker));
      const began = world.time.now();
      await world.run(100);
      while (posted.some(({ deliveryId }) => !world.delivered.has(deliveryId))) await world.run(100);
      return (world.time.now() - began) / 1000;
    };
    expect(await secondsForTen()).toBeGreaterThan(9);
    await world.run(600_000);
    await secondsForTen();
    expect(await secondsForTen()).toBeLessThan(2);
    world.checkEnd();
  });

  it('that crashes its worker gets three counted chances, and deliveries beside it are all delivered', async () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const world = new World(seed, { limits: { carefulAfterCrashes: 1 } });
      const slow = Array.from({ length: 12 }, (_, i) =>
        world.addEndpoint({ timeout_ms: 4_000 }, () => ({ status: 200, afterMs: 2_500 }), i * 20),
      );
      let crashes = 0;
      const poison = world.addEndpoint({ timeout_ms: 4_000 }, () => {
        crashes += 1;
        const owner = world.store.ownerOf(poison.id);
        world.crash(world.running.find(({ workerId }) => workerId === owner)!);
        return { status: null, afterMs: 0 };
      });
      const api = await world.addProcess({ role: 'api' });
      const workers = () => world.running.filter(({ role }) => role === 'all');
      while (workers().length < 2) await world.addProcess();
      await world.run(5_000);
      const poisoned = world.publish([poison.id], api);
      for (const endpoint of slow) for (let i = 0; i < 3; i += 1) world.publish([endpoint.id], api);
      for (let waited = 0; waited < 300 && (waited === 0 || world.store.queue.size > 0); waited += 1) {
        await world.run(1_000);
        while (workers().length < 2) await world.addProcess();
      }
      expect(world.store.deadLetters.get(poisoned.deliveryId)).toMatchObject({ reason: 'worker_crash' });
      // The crash that makes the shard careful is not counted.
      expect(crashes).toBe(4);
      for (const [delivery, { endpointId }] of world.accepted)
        if (endpointId !== poison.id) expect(world.store.finished.get(delivery)?.status).toBe('delivered');
    }
  });

  it('DSP-5: is sent fresh ones also while hanging retries of others use up their share', async () => {
    const world = new World(9, { limits: { maxSockets: 20 } });
    const hanging = Array.from({ length: 4 }, () =>
      world.addEndpoint(
        { breaker: null, timeout_ms: 30_000, max_in_flight: 5, retry: { schedule: [0, 1, 1, 1, 1] } },
        (now) => (now < 6_000 ? { status: 500, afterMs: 5 } : { status: null, afterMs: 0 }),
      ),
    );
    let healthy = false;
    const mixed = world.addEndpoint({ breaker: null, retry: { schedule: [0, 2, 2, 2] } }, () =>
      healthy ? OK : { status: 500, afterMs: 5 },
    );
    const worker = await world.addProcess();
    await world.run(5_000);
    for (const { id } of hanging) for (let i = 0; i < 5; i += 1) world.publish([id], worker);
    for (let i = 0; i < 10; i += 1) world.publish([mixed.id], worker);
    await world.run(4_000);
    healthy = true;
    // All of the retries' sockets hang now; this lane has retries that are due, and a stream of fresh ones.
    const fresh: Publication[] = [];
    for (let i = 0; i < 40; i += 1) {
      fresh.push(world.publish([mixed.id], worker));
      await world.run(50);
    }
    for (const { deliveryId } of fresh)
      expect(world.firstStart.get(deliveryId)! - world.accepted.get(deliveryId)!.at).toBeLessThan(200);
  });

  it('DSP-6: with a backlog holds no more in memory than its share, however often it is woken', async () => {
    const world = new World(10, { limits: { laneItems: 20, laneBudgetItems: 400 } });
    const paused = world.addEndpoint({}, ok);
    const fifo = world.addEndpoint({ ordering: 'fifo' }, ok);
    const waiting = world.addEndpoint({ breaker: null, retry: { schedule: [0, 3600, 3600] } }, () => ({
      status: 500,
      afterMs: 5,
    }));
    const worker = await world.addProcess();
    const acceptor = await world.addProcess();
    await world.run(5_000);
    world.change(paused.id, { paused: true });
    world.change(fifo.id, { paused: true });
    await world.run(1_000);
    for (let i = 0; i < 300; i += 1) {
      world.publish([paused.id, fifo.id, waiting.id], acceptor);
      if (i % 10 === 0) await world.run(20);
    }
    await world.run(60_000);
    const held = worker.engine.stats.inMemory + acceptor.engine.stats.inMemory;
    expect(held).toBeLessThanOrEqual(4 * 20 + 10);
  });

  it('with a lane full of retries for tomorrow tries the one that is due in a moment', async () => {
    const world = new World(11, { limits: { laneItems: 10 } });
    let wait = 3600;
    const endpoint = world.addEndpoint({ breaker: null }, () => ({
      status: 503,
      afterMs: 5,
      retryAfterMs: wait * 1000,
    }));
    world.change(endpoint.id, {
      retry: { ...endpoint.retry, kind: 'schedule', schedule: [0, 2, 2, 2, 2, 2], jitter: 'none' },
    });
    const worker = await world.addProcess();
    await world.run(2_000);
    // Retry-After is capped at a minute here, so tomorrow is in a minute.
    for (let i = 0; i < 40; i += 1) world.publish([endpoint.id], worker);
    await world.run(1_000);
    wait = 0;
    const publication = world.publish([endpoint.id], worker);
    await world.run(100);
    const row = world.store.queue.get(publication.deliveryId)!;
    expect(row.attempts).toBe(1);
    await world.run(row.dueAt! - world.time.now() + 300);
    expect(row.attempts).toBe(2);
  });

  it('HLT-1: gets nothing that waited for its payload when the circuit opened', async () => {
    const world = new World(12);
    const endpoint = world.addEndpoint({ breaker: { consecutive: 2 }, max_in_flight: 10 }, () => ({
      status: 500,
      afterMs: 5,
    }));
    const worker = await world.addProcess();
    await world.run(2_000);
    world.change(endpoint.id, { paused: true });
    await world.run(1_000);
    for (let i = 0; i < 10; i += 1) world.commitUnannounced([endpoint.id]);
    await world.run(6_000);
    let slow = 0;
    world.weather.latencyMs = () => 1 + 30 * (slow++ % 10);
    world.change(endpoint.id, { paused: false });
    await world.run(3_000);
    const lane = worker.engine.lanes.get(endpoint.id)!;
    expect(lane.breaker.allowsTraffic).toBe(false);
    expect(lane.inFlight).toBe(0);
  });
});

describe('a replay', () => {
  it('that is asked for while the last attempt is on the wire is sent, though that attempt fails', async () => {
    const world = new World(19);
    let status = 500;
    const endpoint = world.addEndpoint({ breaker: null, retry: { schedule: [0, 2] } }, () => ({
      status,
      afterMs: 1_000,
    }));
    const worker = await world.addProcess();
    await world.run(2_000);
    const publication = world.publish([endpoint.id], worker);
    while (world.requests < 2) await world.run(100);
    status = 200;
    const replay = [{ id: publication.deliveryId, endpointId: endpoint.id }];
    await world.time.inside(worker.process, () => void worker.queue.replay(replay));
    await world.run(500);
    await world.time.inside(worker.process, () => worker.engine.router.wake(endpoint.id));
    await world.run(10_000);
    world.checkEnd();
    expect(world.store.finished.get(publication.deliveryId)).toMatchObject({ status: 'delivered' });
    expect(world.requests).toBe(3);
  });
});

describe('ownership', () => {
  it('comes back after a statement whose answer was lost: no shard stays without somebody who works on it', async () => {
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

  it('changes hands without a second copy, also when outcomes are slow to be written', async () => {
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

  it('DSP-2: of a worker that died moves on within 2 s, of one that is paused within 10 s', async () => {
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

describe('a database that is away', () => {
  it('stops the sending at the cap of outcomes that are not written down', async () => {
    const world = new World(16, { limits: { unsettledCap: 10 } });
    const endpoints = Array.from({ length: 20 }, () => world.addEndpoint({}, ok));
    const worker = await world.addProcess();
    await world.run(2_000);
    world.weather.latencyMs = () => 700;
    for (let i = 0; i < 10; i += 1) for (const { id } of endpoints) world.publish([id], worker);
    await world.run(500);
    // Those that were already on their way when the cap was reached come on top.
    expect(worker.engine.stats.unsettled).toBeLessThanOrEqual(10 + 54);
    const { requests } = world;
    await world.run(150);
    expect(world.requests).toBe(requests);
    world.weather.latencyMs = () => 2;
    await world.run(20_000);
    world.checkEnd();
  });
});

describe('a FIFO endpoint', () => {
  it('goes on when the dead letter that blocked it is gone', async () => {
    const world = new World(14);
    let status = 400;
    const endpoint = world.addEndpoint({ ordering: 'fifo', fifo_on_dead: 'block' }, () => ({
      status,
      afterMs: 5,
    }));
    const worker = await world.addProcess();
    await world.run(2_000);
    world.publish([endpoint.id], worker);
    world.publish([endpoint.id], worker);
    await world.run(1_000);
    expect(world.requests).toBe(1);
    status = 200;
    world.store.deadLetters.clear();
    await world.run(6_000);
    expect(world.requests).toBe(2);
  });

  it('is sent one after the other, in order, from whatever process they come', async () => {
    const world = new World(15);
    const endpoint = world.addEndpoint({ ordering: 'fifo' }, () => ({ status: 200, afterMs: 3 }));
    const workers = [await world.addProcess(), await world.addProcess()];
    await world.run(4_000);
    for (let i = 0; i < 100; i += 1) {
      world.publish([endpoint.id], world.random.pick(workers));
      await world.run(3);
    }
    await world.run(5_000);
    world.checkEnd();
    const starts = [...world.accepted.keys()].map((id) => world.firstStart.get(id)!);
    expect(starts).toHaveLength(100);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  });
});

describe('a rate limit', () => {
  const LIMIT = { per_second: 0.1, burst: 3 };

  it('lets the burst of a new endpoint go at once, and never again: not after a change, not after a takeover', async () => {
    const world = new World(17);
    const worker = await world.addProcess();
    await world.run(2_000);
    const { id } = world.addEndpoint({ rate_limit: LIMIT }, ok);
    await world.run(1_000);
    for (let i = 0; i < 10; i += 1) world.publish([id], worker);
    await world.run(1_000);
    expect(world.requests).toBe(3);
    world.change(id, { rateLimit: { perSecond: 0.1, burst: 4 } });
    await world.run(2_000);
    expect(world.requests).toBe(3);
    world.crash(worker);
    await world.addProcess();
    await world.run(8_000);
    expect(world.requests).toBe(3);
    await world.run(10_000);
    expect(world.requests).toBe(4);
  });

  it('begins with nothing where somebody else may have sent', async () => {
    const world = new World(18);
    const { id } = world.addEndpoint({ rate_limit: LIMIT }, ok);
    const worker = await world.addProcess();
    await world.run(2_000);
    world.publish([id], worker);
    await world.run(2_000);
    expect(world.requests).toBe(0);
    await world.run(10_000);
    expect(world.requests).toBe(1);
  });
});

describe('a machine whose clock jumps', () => {
  const DAY_MS = 86_400_000;

  it.each([
    ['for 127 ms by 40 days', 40, 127],
    ['for 11 s by 40 days', 40, 11_000],
    ['for good by 40 days', 40, 60_000],
    ['for 127 ms back by 40 days', -40, 127],
    ['for good back by 40 days', -40, 60_000],
  ])('%s accepts, delivers and expires as before', async (_, days, forMs) => {
    const world = new World(7);
    // Half of the receivers are slow to recover: their deliveries wait for a retry while the clock is wrong.
    const recovering = (sinceMs: number): Answer => (sinceMs < 40_000 ? { status: 500, afterMs: 20 } : OK);
    const endpoints = Array.from({ length: 20 }, (_, index) =>
      world.addEndpoint({ retry: { max_age_seconds: 3_600 } }, index % 2 === 0 ? ok : recovering),
    );
    const glitching = await world.addProcess();
    const healthy = await world.addProcess();
    await world.run(4_000);
    const publish = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) {
        for (const process of [glitching, healthy]) world.publish([world.random.pick(endpoints).id], process);
        await world.run(25);
      }
    };
    await publish(20);
    glitching.process.clockWrongByMs = days * DAY_MS;
    await publish(Math.ceil(forMs / 1_000));
    await world.run(forMs);
    glitching.process.clockWrongByMs = 0;
    await publish(20);
    await world.run(600_000);
    world.checkEnd();
    expect(world.publications.filter(({ accepted }) => accepted === null)).toEqual([]);
    expect([...world.store.deadLetters.values()]).toEqual([]);
    expect(world.delivered.size).toBe(world.publications.length);
    for (const [id, { at }] of world.accepted) expect(Math.abs(timeOfId(id) - at)).toBeLessThan(2_000);
  });
});
