/**
 * What a failing machine, network or database does, on virtual time with the real accept stage and the real engine. Three
 * processes share the work while twelve endpoints get events. After the fault everything accepted ends, each endpoint gets
 * new events promptly again, and all rules of the simulation hold (lease, limits, order, one probe at a time).
 */
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../../src/memory/faults.ts';
import type { SimulatedProcess } from '../../simulation/simulated-process.ts';
import { calmWeather } from '../../simulation/weather.ts';
import { World } from '../../simulation/world.ts';

interface Scene {
  readonly world: World;
  readonly workers: readonly SimulatedProcess[];
  readonly ids: readonly string[];
}

interface FaultCase {
  /** Called every 200 ms of the fault. */
  readonly each: (scene: Scene, tick: number) => void | Promise<void>;
  readonly isOneNode?: boolean;
}

const DAY_MS = 86_400_000;
const once =
  (act: (scene: Scene) => void | Promise<void>): FaultCase['each'] =>
  (scene, tick) =>
    tick === 5 ? act(scene) : undefined;
const failCalls = (fault: Fault, share: number): FaultCase['each'] =>
  once(({ world }) => {
    world.weather.fault = () => (world.random.chance(share) ? fault : 'none');
  });
const failOperation = (operation: string, fault: Fault): FaultCase['each'] =>
  once(({ world }) => {
    world.weather.fault = (called) => (called === operation ? fault : 'none');
  });
const moveClock = (ms: number): FaultCase['each'] =>
  once(({ workers }) => {
    workers[0]!.process.clockErrorMs = ms;
  });
const pauseFor = (ms: number, count: number): FaultCase['each'] =>
  once(({ world, workers }) => {
    for (const { process } of workers.slice(0, count)) {
      world.time.pause(process);
      world.time.after(ms, null, () => world.time.resume(process));
    }
  });

const FAULTS: Readonly<Record<string, FaultCase>> = {
  "a machine's clock steps 40 days ahead": { each: moveClock(40 * DAY_MS) },
  "a machine's clock steps 40 days back": { each: moveClock(-40 * DAY_MS) },
  "a machine's clock is 40 days ahead for 127 ms": {
    each: once(({ world, workers }) => {
      workers[0]!.process.clockErrorMs = 40 * DAY_MS;
      world.time.after(127, null, () => {
        workers[0]!.process.clockErrorMs = 0;
      });
    }),
  },
  "all machines' clocks differ by days": {
    each: once(({ workers }) => {
      for (const [n, { process }] of workers.entries()) process.clockErrorMs = (n - 1) * 40 * DAY_MS;
    }),
  },
  "a machine's clock swings by an hour every 200 ms": {
    each: ({ workers }, tick) => {
      workers[0]!.process.clockErrorMs = tick % 2 === 0 ? 3_600_000 : -3_600_000;
    },
  },
  'a worker is killed with requests on the wire': {
    each: once(({ world, workers }) => world.crash(workers[0]!)),
  },
  'two of three workers are killed at once': {
    each: once(({ world, workers }) => {
      for (const worker of workers.slice(0, 2)) world.crash(worker);
    }),
  },
  'a worker is killed every three seconds and replaced': {
    each: async ({ world }, tick) => {
      if (tick % 15 !== 14) return;
      world.crash(world.running.at(-1)!);
      await world.addProcess();
    },
  },
  'a worker is paused for five seconds': { each: pauseFor(5_000, 1) },
  'a worker is paused for fifteen seconds and wakes up without its shards': { each: pauseFor(15_000, 1) },
  'all workers are paused for nine seconds': { each: pauseFor(9_000, 3) },
  'a worker is paused for 900 ms again and again, just below its lease': {
    each: ({ world, workers }, tick) => {
      if (tick % 10 !== 0) return;
      world.time.pause(workers[0]!.process);
      world.time.after(900, null, () => world.time.resume(workers[0]!.process));
    },
  },
  'a worker is paused for 1,100 ms again and again, just above its lease': {
    each: ({ world, workers }, tick) => {
      if (tick % 10 !== 0) return;
      world.time.pause(workers[0]!.process);
      world.time.after(1_100, null, () => world.time.resume(workers[0]!.process));
    },
  },
  'a worker stops while it has requests on the wire': {
    each: once(({ world, workers }) => world.time.inside(workers[0]!.process, () => void workers[0]!.stop())),
  },
  'all workers are replaced one by one': {
    each: async ({ world, workers }, tick) => {
      const leaving = workers[tick / 15 - 1];
      if (leaving === undefined) return;
      await world.addProcess();
      await world.time.inside(leaving.process, () => void leaving.stop());
    },
  },
  'the session of a worker breaks': {
    each: once(({ world, workers }) => world.store.breakSession(workers[0]!.workerId)),
  },
  'the session of a worker ends without notice': {
    each: once(({ world, workers }) => world.store.endSession(workers[0]!.workerId)),
  },
  'the sessions of all workers break every two seconds': {
    each: ({ world, workers }, tick) => {
      if (tick % 10 === 0) for (const worker of workers) world.store.breakSession(worker.workerId);
    },
  },
  'every notification is lost': {
    each: once(({ world }) => {
      world.weather.losesMessage = () => true;
    }),
  },
  'the connections for notifications break every second': {
    each: async ({ world, workers }, tick) => {
      if (tick % 5 === 0)
        for (const { process, notifier } of workers)
          await world.time.inside(process, () => notifier.breakConnection());
    },
  },
  'hand-overs between the processes of a node are lost': {
    isOneNode: true,
    each: once(({ world }) => {
      world.weather.handOverMs = () => Number.POSITIVE_INFINITY;
    }),
  },
  'hand-overs between the processes of a node take three seconds': {
    isOneNode: true,
    each: once(({ world }) => {
      world.weather.handOverMs = () => 3_000;
    }),
  },
  'the database takes up to two seconds for an answer': {
    each: once(({ world }) => {
      world.weather.latencyMs = () => world.random.between(1, 2_000);
    }),
  },
  'commits become visible six seconds late': {
    each: once(({ world }) => {
      world.weather.commitMs = () => 6_000;
    }),
  },
  'the database does not answer for ten seconds': { each: failCalls('unavailable', 1) },
  'the connection is cut before every call': { each: failCalls('lost_request', 1) },
  'a fifth of all answers of the database is lost': { each: failCalls('lost_answer', 0.2) },
  'a third of all requests to the database is lost': { each: failCalls('lost_request', 0.33) },
  'a third of all calls runs into a locked row or a deadlock': { each: failCalls('conflict', 0.33) },
  'a third of all calls runs into the statement timeout': { each: failCalls('timeout', 0.33) },
  'no result can be recorded because of locked rows': { each: failOperation('settle', 'conflict') },
  'no result can be recorded within the statement timeout': { each: failOperation('settle', 'timeout') },
  'the answers to all recorded results are lost': { each: failOperation('settle', 'lost_answer') },
  'no start can be recorded': { each: failOperation('markStarted', 'conflict') },
  'the answers to all recorded starts are lost': { each: failOperation('markStarted', 'lost_answer') },
  'no lane can be read': { each: failOperation('loadLanes', 'timeout') },
  'no state of an endpoint can be read': { each: failOperation('loadStates', 'timeout') },
  'no payload can be read': { each: failOperation('load', 'timeout') },
  'no requested probe can be read': { each: failOperation('loadProbes', 'timeout') },
  'no event can be accepted because of locked rows': { each: failOperation('append', 'conflict') },
  'the answers to all accepted events are lost': { each: failOperation('append', 'lost_answer') },
  'no lease can be renewed': { each: failOperation('renew', 'timeout') },
  'connections to receivers take up to 900 ms': {
    each: once(({ world }) => {
      world.weather.connectMs = () => world.random.between(0, 900);
    }),
  },
};

const TICK_MS = 200;
const TICKS = 50;
const RECOVERY_MS = 20_000;

async function endure({ each, isOneNode = false }: FaultCase) {
  const world = new World(3, { isOneNode });
  let isCalm = false;
  const retry = { schedule: [0, 1, 2, 5, 10, 30, 60], jitter: 'none' as const };
  const ids = Array.from(
    { length: 12 },
    (_, n) =>
      world.addEndpoint(
        {
          retry,
          breaker: { consecutive: 3, cooldown_seconds: 2, max_cooldown_seconds: 4 },
          ordering: n % 3 === 0 ? 'fifo' : 'none',
        },
        () => ({ status: !isCalm && world.random.chance(n === 1 ? 0.7 : 0.05) ? 503 : 200, afterMs: 50 }),
      ).id,
  );
  const workers = [await world.addProcess(), await world.addProcess(), await world.addProcess()];
  await world.run(4_000);
  for (let tick = 0; tick < TICKS; tick += 1) {
    const [by] = world.running;
    if (by !== undefined) for (const id of ids) world.publish([id], by);
    await each({ world, workers, ids }, tick);
    await world.run(TICK_MS);
  }
  isCalm = true;
  world.weather = calmWeather(world.random);
  for (const { process } of world.processes) world.time.resume(process);
  await world.run(RECOVERY_MS);
  const giveUpAt = world.time.now() + 15 * 60_000;
  while (world.store.queue.size > 0 && world.time.now() < giveUpAt) await world.run(5_000);
  world.checkEnd();
  const sent = ids.map((id) => world.publish([id], world.running.at(-1)!));
  await world.run(5_000);
  return Math.max(
    ...sent.map(
      ({ deliveryId }) =>
        (world.firstStart.get(deliveryId) ?? Number.POSITIVE_INFINITY) - world.accepted.get(deliveryId)!.at,
    ),
  );
}

describe('a failing machine loses nothing and delays nothing for longer than it fails', () => {
  test.each(Object.entries(FAULTS))('%s', async (_, fault) => {
    expect(await endure(fault)).toBeLessThan(1_000);
  });
});
