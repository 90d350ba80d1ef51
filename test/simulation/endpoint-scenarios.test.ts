/** Situations of single endpoints on virtual time, with the real accept stage and the real engine. */
import { describe, expect, it } from 'vitest';
import { timeOfId } from '../../src/domain/ids.ts';
import type { Publication } from './publication.ts';
import { type Answer, World } from './world.ts';

const OK: Answer = { status: 200, afterMs: 20 };
const ok = () => OK;

describe('an endpoint', () => {
  it('does not get a request twice if it is disabled and enabled while the request is on the wire', async () => {
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

  it('gets no requests after it is disabled, and its waiting deliveries are skipped, for any timing', async () => {
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
      // Long enough for the janitor to check the lane for expired deliveries.
      await world.run(world.random.between(1_000, 6_000));
      world.change(endpoint.id, { paused: false });
      await world.run(world.random.between(300, 900));
      // Matched before the endpoint is disabled, committed afterwards.
      world.commitUnannounced([endpoint.id], 700);
      world.disable(endpoint.id);
      await world.run(310_000);
      world.checkEnd();
    }
  });

  it('that is disabled and enabled again has every event delivered, dead or skipped, and gets skipped ones by a replay', async () => {
    for (let seed = 0; seed < 4; seed += 1) {
      const world = new World(seed);
      const other = world.addEndpoint({}, ok);
      const endpoint = world.addEndpoint({}, ok);
      const worker = await world.addProcess();
      await world.run(2_000);
      for (let i = 0; i < 40; i += 1) {
        if (i === 10) world.disable(endpoint.id);
        if (i === 30) world.enable(endpoint.id);
        if (world.random.chance(0.5)) world.publishToOutbox([other.id, endpoint.id]);
        else world.commitUnannounced([other.id, endpoint.id], world.random.between(0, 300));
        await world.run(world.random.between(10, 200));
      }
      await world.run(70_000);
      world.checkEnd();
      const skipped = [...world.store.finished.values()].filter(({ status }) => status === 'skipped');
      expect(new Set(skipped.map(({ endpointId }) => endpointId))).toEqual(new Set([endpoint.id]));
      expect(skipped.length).toBeGreaterThanOrEqual(15);

      await world.time.inside(worker.process, () => void worker.queue.replay(skipped));
      await world.run(70_000);
      world.checkEnd();
      const ends = [...world.store.finished.values()].filter(({ endpointId }) => endpointId === endpoint.id);
      expect(ends.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 'delivered'));
    }
  });

  it('has its deliveries skipped later if the store is unavailable when it is disabled', async () => {
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

  it('gets one request at a time after crashes, and as many as usual after a while without crashes', async () => {
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

  it('gives up a delivery after three counted crashes of its worker, and other deliveries all arrive', async () => {
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

  it('DSP-5: gets fresh deliveries while hanging retries of other endpoints use all sockets for retries', async () => {
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
    // All sockets for retries hang now. This lane has due retries and a stream of fresh deliveries.
    const fresh: Publication[] = [];
    for (let i = 0; i < 40; i += 1) {
      fresh.push(world.publish([mixed.id], worker));
      await world.run(50);
    }
    for (const { deliveryId } of fresh)
      expect(world.firstStart.get(deliveryId)! - world.accepted.get(deliveryId)!.at).toBeLessThan(200);
  });

  it('DSP-6: keeps at most its share of a backlog in memory, however often its lane is woken', async () => {
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

  it('gets a retry that is due soon even if its lane is full of later retries', async () => {
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
    // The simulation caps Retry-After at a minute, so these retries are due in a minute.
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

  it('HLT-1: gets no delivery whose payload was still loading when the circuit opened', async () => {
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
  it('is sent if it is requested while the last attempt is on the wire, even if that attempt fails', async () => {
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

describe('a FIFO endpoint', () => {
  it('continues when the dead letter that blocked it is removed', async () => {
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

  it('waits for the request of a dead worker, even if it is disabled and enabled again after the takeover', async () => {
    const world = new World(5);
    const endpoint = world.addEndpoint({ ordering: 'fifo', timeout_ms: 20_000 }, () => ({
      status: 200,
      afterMs: 19_000,
    }));
    const first = await world.addProcess();
    await world.run(2_000);
    world.publish([endpoint.id], first);
    await world.run(1_000);
    world.crash(first);
    const second = await world.addProcess();
    world.disable(endpoint.id);
    await world.run(5_000);
    world.enable(endpoint.id);
    await world.run(500);
    const publication = world.publish([endpoint.id], second);
    // Every request is checked: two at once would be a violation.
    await world.run(60_000);
    world.checkEnd();
    const { deliveryId } = publication;
    expect(world.firstStart.get(deliveryId)! - world.accepted.get(deliveryId)!.at).toBeGreaterThan(10_000);
  });

  it('gets its deliveries one after the other, in order, whichever process accepted them', async () => {
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

  it('allows the full burst for a new endpoint only, not after a change or a takeover', async () => {
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

  it('starts without a burst if another worker may have sent before', async () => {
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
    ['ahead by 40 days for 127 ms', 40, 127],
    ['ahead by 40 days for 11 s', 40, 11_000],
    ['ahead by 40 days for a minute', 40, 60_000],
    ['back by 40 days for 127 ms', -40, 127],
    ['back by 40 days for a minute', -40, 60_000],
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
    glitching.process.clockErrorMs = days * DAY_MS;
    await publish(Math.ceil(forMs / 1_000));
    await world.run(forMs);
    glitching.process.clockErrorMs = 0;
    await publish(20);
    await world.run(600_000);
    world.checkEnd();
    expect(world.publications.filter(({ accepted }) => accepted === null)).toEqual([]);
    expect([...world.store.deadLetters.values()]).toEqual([]);
    expect(world.delivered.size).toBe(world.publications.length);
    for (const [id, { at }] of world.accepted) expect(Math.abs(timeOfId(id) - at)).toBeLessThan(2_000);
  });
});
