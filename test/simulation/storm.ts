/** A run of a few virtual minutes: faults of all kinds, then calm, in which everything must come to its end. */
import type { EndpointConfig } from '../../src/domain/endpoint-config.ts';
import type { Random } from './virtual-time.ts';
import type { Worker } from './worker.ts';
import { type Answer, Violation, World } from './world.ts';

const STORM_MS = 45_000;
const LONGEST_RUN_MS = 20 * 60_000;

const RETRY = { schedule: [0, 1, 2, 5, 10, 30, 60, 120, 120], jitter: 'proportional' as const };
const BREAKER = { consecutive: 4, min_requests: 10, cooldown_seconds: 4, max_cooldown_seconds: 15 };

function someConfig(random: Random): EndpointConfig {
  const config: EndpointConfig = {
    retry: RETRY,
    timeout_ms: random.pick([1_000, 3_000, 5_000]),
    max_in_flight: random.pick([1, 2, 5, 10]),
    breaker: random.chance(0.7) ? BREAKER : null,
  };
  if (random.chance(0.25)) config.ordering = 'fifo';
  else if (random.chance(0.3))
    config.rate_limit = { per_second: random.pick([2, 10, 50]), burst: random.pick([1, 5]) };
  return config;
}

type Behaviour = 'fine' | 'failing' | 'hanging' | 'flapping' | 'throttling';

function behave(world: World, kind: Behaviour, calmAt: () => number): (now: number) => Answer {
  const { random } = world;
  const fine = (): Answer => ({ status: 200, afterMs: random.between(2, 60) });
  return (now) => {
    if (now >= calmAt() || kind === 'fine') return fine();
    switch (kind) {
      case 'failing':
        return { status: random.pick([500, 503, 404]), afterMs: random.between(2, 50) };
      case 'hanging':
        return { status: null, afterMs: 0 };
      case 'flapping':
        return Math.floor(now / 7_000) % 2 === 0 ? fine() : { status: 500, afterMs: random.between(2, 500) };
      case 'throttling':
        return random.chance(0.2)
          ? { status: 429, afterMs: 5, retryAfterMs: random.between(500, 3_000) }
          : fine();
    }
  };
}

/** One run. Throws what was violated. */
export async function storm(seed: number, watch?: (world: World) => void): Promise<World> {
  const world = new World(seed);
  watch?.(world);
  const { random, time, database } = world;
  if (seed % 2 === 0)
    world.toSiblingMs = () =>
      random.chance(0.1) ? Number.POSITIVE_INFINITY : random.between(0, random.pick([1, 1, 50, 3_000]));
  let calmAt = Number.POSITIVE_INFINITY;
  const kinds: Behaviour[] = ['fine', 'fine', 'fine', 'failing', 'hanging', 'flapping', 'throttling'];
  const newEndpoint = () =>
    world.addEndpoint(
      someConfig(random),
      behave(world, random.pick(kinds), () => calmAt),
    );
  const endpoints = Array.from({ length: random.integer(8, 25) }, newEndpoint);
  for (let i = random.integer(1, 4); i > 0; i -= 1) await world.addWorker();
  await world.run(1_000);

  const endAt = time.now() + STORM_MS;
  const stopped = new Set<Worker>();
  while (time.now() < endAt) {
    await world.run(random.between(5, 400));
    const { running } = world;
    for (let i = random.integer(0, 6); i > 0; i -= 1) {
      const targets = endpoints.filter(() => random.chance(0.1)).map(({ id }) => id);
      const by = running.length === 0 || random.chance(0.1) ? null : random.pick(running);
      if (targets.length > 0)
        world.publish(targets, by, random.chance(0.05) ? random.between(0, 6_000) : undefined);
    }
    if (!random.chance(0.12)) continue;
    const worker = running.length === 0 ? null : random.pick(running);
    const { id } = random.pick(endpoints);
    switch (random.integer(0, 9)) {
      case 0:
        if (worker !== null) world.crash(worker);
        break;
      case 1:
        if (worker !== null) {
          time.pause(worker.process);
          time.after(random.between(200, 15_000), null, () => time.resume(worker.process));
        }
        break;
      case 2:
      case 3:
        if (world.workers.filter(({ process }) => process.state !== 'dead').length < 4)
          await world.addWorker();
        break;
      case 4: {
        const slowMs = random.between(50, 2_500);
        database.weather.latency = () => (random.chance(0.5) ? random.between(1, slowMs) : 2);
        break;
      }
      case 5: {
        const share = random.between(0.01, 0.2);
        database.weather.fault = () =>
          random.chance(share) ? random.pick(['lost_request', 'lost_answer'] as const) : 'none';
        break;
      }
      case 6:
        database.weather.latency = () => random.between(0.5, 4);
        database.weather.fault = () => 'none';
        database.weather.loseWake = () => random.chance(0.3);
        break;
      case 7:
        world.change(id, { paused: true });
        time.after(random.between(100, 10_000), null, () => world.change(id, { paused: false }));
        break;
      case 8:
        if (worker !== null && running.length > 1 && !stopped.has(worker)) {
          stopped.add(worker);
          await time.inside(worker.process, () => void worker.stop());
        }
        break;
      case 9: {
        const made = newEndpoint();
        endpoints.push(made);
        for (let i = random.integer(0, 10); i > 0; i -= 1) world.publish([made.id], worker);
      }
    }
  }

  // Calm again: whatever is left must now be sent.
  calmAt = time.now();
  if (world.toSiblingMs !== null) world.toSiblingMs = () => random.between(0, 1);
  database.weather = { latency: () => random.between(0.5, 4), fault: () => 'none', loseWake: () => false };
  for (const worker of world.workers) time.resume(worker.process);
  await world.addWorker();
  const giveUpAt = time.now() + LONGEST_RUN_MS;
  while (database.queue.size > 0 && time.now() < giveUpAt) await world.run(5_000);
  await world.run(5_000);
  world.checkEnd();

  // And as prompt as ever.
  const living = world.running.filter((worker) => !stopped.has(worker));
  const late = endpoints.map(({ id }) => world.publish([id], random.pick(living))[0]!);
  await world.run(5_000);
  for (const delivery of late) {
    const waited =
      (world.firstStart.get(delivery) ?? Number.POSITIVE_INFINITY) - world.accepted.get(delivery)!.at;
    if (waited > 1_000)
      throw new Violation(`delivery …${delivery.slice(-13)} waited ${waited} ms in calm weather`);
  }
  world.checkEnd();
  return world;
}
