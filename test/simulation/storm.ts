/** A run of a few virtual minutes: first all kinds of faults, then none. Then all deliveries must end. */
import type { Endpoint } from '../../src/domain/endpoint.ts';
import type { EndpointConfig } from '../../src/domain/endpoint-config.ts';
import type { EventContent } from '../../src/domain/event.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { Publication } from './publication.ts';
import { PINNED_VERSION } from './simulated-conversions.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { Random } from './virtual-time.ts';
import { calmWeather } from './weather.ts';
import { type Answer, type Behaviour, Violation, World } from './world.ts';

const STORM_MS = 45_000;
const LONGEST_RUN_MS = 20 * 60_000;
/** A producer without an answer after this time tries another process. */
const PRODUCER_TIMEOUT_MS = 8_000;

/** Processes believe a step of the store's clock after 15 seconds, if its answers are quick enough. */
const AGREE_MS = 30_000;

const RETRY = { schedule: [0, 1, 2, 5, 10, 30, 60, 120, 120], jitter: 'proportional' as const };
const BREAKER = { consecutive: 4, min_requests: 10, cooldown_seconds: 4, max_cooldown_seconds: 15 };

/** Every third endpoint pins a version, so that its payloads are converted. */
const PIN_EVERY = 3;

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
  if (random.chance(0.3))
    config.batch = { max_events: random.pick([1, 3, 10]), max_wait_ms: random.pick([0, 200, 2_000]) };
  else if (config.ordering !== 'fifo' && random.chance(0.2))
    config.debounce = {
      key: 'data.key',
      window_ms: random.pick([50, 500, 2_000]),
      mode: random.pick(['last', 'first']),
    };
  return config;
}

/** Every storm has endpoints with batches whose receivers reject some events, or name them as failed. */
const PICKY_BATCHES: readonly EndpointConfig[] = [
  { retry: RETRY, breaker: null, batch: { max_events: 10, max_wait_ms: 500 } },
  { retry: RETRY, breaker: null, batch: { max_events: 10, max_wait_ms: 500 }, ordering: 'fifo' },
];

const KINDS = ['fine', 'fine', 'fine', 'failing', 'hanging', 'flapping', 'throttling', 'picky'] as const;

/** An event that a picky receiver dislikes: every fifth. */
const isDisliked = ({ data }: EventContent): boolean =>
  Number(/"number":(\d+)/.exec(data.toString())?.[1] ?? 1) % 5 === 0;

function behave(random: Random, kind: (typeof KINDS)[number], isCalm: () => boolean): Behaviour {
  const fine = (): Answer => ({ status: 200, afterMs: random.between(2, 60) });
  return (now, { batch, event }) => {
    if (isCalm()) return fine();
    switch (kind) {
      case 'fine':
        return fine();
      case 'failing':
        return { status: random.pick([500, 503, 404]), afterMs: random.between(2, random.pick([50, 800])) };
      case 'hanging':
        return { status: null, afterMs: 0 };
      case 'flapping':
        return Math.floor(now / 7_000) % 2 === 0 ? fine() : { status: 500, afterMs: random.between(2, 500) };
      case 'picky': {
        const events = batch?.events ?? [event];
        const disliked = events.filter(isDisliked);
        if (disliked.length === 0) return fine();
        // It rejects the whole request, or names the events that failed. A single event cannot be named.
        return random.chance(0.5) || events.length === 1
          ? { status: random.pick([400, 413]), afterMs: random.between(2, 60) }
          : { ...fine(), status: random.pick([200, 207]), failed: disliked.map(({ id }) => id) };
      }
      case 'throttling':
        return random.chance(0.2)
          ? { status: 429, afterMs: 5, retryAfterMs: random.between(500, 3_000) }
          : fine();
    }
  };
}

export interface StormOptions {
  /** Called with the world before the run. */
  readonly watch?: (world: World) => void;
  /** True: endpoints and workers have one of two regions, and endpoints change theirs. */
  readonly hasRegions?: boolean;
  /** True: requests are accepted in the accept log, whose broker fails too. */
  readonly isOnKafka?: boolean;
  /** The store's clock is wrong by 40 days now and then, for up to ten seconds. Default true. */
  readonly hasClockSteps?: boolean;
  /**
   * True: processes also start while the running ones use another time than the store, because it stepped less than 15 seconds ago.
   * A process that starts takes the store's time at once. Until the others follow, deliveries that are taken over may be sent twice
   * at the same time. Default false.
   */
  readonly startsDuringSteps?: boolean;
  /** True: the store's clock may be wrong for up to a minute, so that processes believe it. Default false: for up to ten seconds. */
  readonly hasLongSteps?: boolean;
}

/** Makes one run. Throws a `Violation` if a promise is broken. */
export async function runStorm(seed: number, options: StormOptions = {}): Promise<World> {
  // In some storms large fan-outs reach the limit of their tenant: requests get 429, rows of the outbox wait.
  const { watch, hasRegions = false, isOnKafka = false } = options;
  const limits = {
    ...(seed % 3 === 0 && { tenantUnwrittenDeliveries: 8 }),
    // In some storms the default region stands in for a region without workers.
    ...(hasRegions && seed % 4 < 2 && { regionFallbackAfterMs: 3_000 }),
  };
  const world = new World(seed, { isOneNode: seed % 2 === 0, isOnKafka, limits });
  watch?.(world);
  await new Storm(world, options).run();
  return world;
}

class Storm {
  readonly #world: World;
  readonly #endpoints: Endpoint[] = [];
  readonly #stopped = new Set<SimulatedProcess>();
  readonly #options: StormOptions;
  readonly #regions: readonly (string | null)[];
  #isCalm = false;
  #keys = 0;
  /** When all processes use the store's time again after its last step. */
  #agreedAt = 0;

  constructor(world: World, options: StormOptions) {
    this.#world = world;
    this.#options = options;
    this.#regions = options.hasRegions ? [null, 'eu'] : [null];
  }

  async run(): Promise<void> {
    const { random, time, weather } = this.#world;
    weather.conversionFailureRate = random.pick([0, 0, 0.1, 0.5]);
    weather.handOverMs = () =>
      random.chance(0.1) ? Number.POSITIVE_INFINITY : random.between(0, random.pick([1, 1, 50, 3_000]));
    for (const config of PICKY_BATCHES) this.#add(config, 'picky');
    for (let i = random.integer(8, 25); i > 0; i -= 1) this.#addEndpoint();
    for (let i = random.integer(1, 4); i > 0; i -= 1) await this.#addProcess('all');
    for (const region of this.#regions) if (region !== null) await this.#addProcess('all', region);
    if (random.chance(0.5)) await this.#addProcess('api');
    await this.#world.run(1_000);
    const endAt = time.now() + STORM_MS;
    while (time.now() < endAt) {
      await this.#world.run(random.between(5, 400));
      this.#publishSome();
      if (random.chance(0.15)) await this.#causeFault();
      if (this.#regions.length > 1 && random.chance(0.1)) this.#changeRegion();
      if (this.#options.isOnKafka && random.chance(0.05)) this.#troubleBroker();
    }
    await this.#calmDown();
    await this.#checkPromptness();
  }

  #addEndpoint(): Endpoint {
    const { random } = this.#world;
    const config = someConfig(random);
    if (this.#endpoints.length % PIN_EVERY === 0) {
      config.api_version = PINNED_VERSION;
      // The API refuses the two together.
      delete config.batch;
    }
    if (this.#regions.length > 1) {
      const region = random.pick(this.#regions);
      if (region !== null) config.region = region;
    }
    return this.#add(config, random.pick(KINDS));
  }

  #add(config: EndpointConfig, kind: (typeof KINDS)[number]): Endpoint {
    const endpoint = this.#world.addEndpoint(
      config,
      behave(this.#world.random, kind, () => this.#isCalm),
    );
    this.#endpoints.push(endpoint);
    return endpoint;
  }

  #addProcess(role: 'all' | 'api', region?: string | null): Promise<SimulatedProcess> {
    const { random } = this.#world;
    const clockErrorMs = this.#clockError();
    const chosen =
      region !== undefined || this.#regions.length === 1 ? (region ?? null) : random.pick(this.#regions);
    return this.#world.addProcess({ role, clockErrorMs, limits: { region: chosen } });
  }

  #clockError(): number {
    const { random } = this.#world;
    return random.chance(0.3) ? random.between(-600_000, 600_000) : 0;
  }

  /** The broker is away, slow, or loses requests and answers for a while. */
  #troubleBroker(): void {
    const { random, time, weather } = this.#world;
    const calm = calmWeather(random);
    const share = random.between(0.05, 0.5);
    const faults = ['lost_request', 'lost_answer', 'lost_answer', 'late', 'twice'] as const;
    const slowMs = random.between(20, 1_500);
    const isAway = random.chance(0.3);
    weather.brokerIsAway = () => isAway;
    weather.brokerMs = () => (random.chance(0.3) ? random.between(1, slowMs) : 2);
    weather.appendFault = () => (random.chance(share) ? random.pick(faults) : 'none');
    time.after(random.between(200, 15_000), null, () => {
      const { brokerIsAway, brokerMs, appendFault } = calm;
      Object.assign(weather, { brokerIsAway, brokerMs, appendFault });
    });
  }

  /** Somebody changes the region of an endpoint, and sometimes back at once. */
  #changeRegion(): void {
    const { random, time, store } = this.#world;
    const { id } = random.pick(this.#endpoints);
    store.changeRegion(id, random.pick(this.#regions));
    if (random.chance(0.3))
      time.after(random.between(0, 2_000), null, () => store.changeRegion(id, random.pick(this.#regions)));
  }

  get #mayStart(): boolean {
    return this.#options.startsDuringSteps === true || this.#world.time.now() >= this.#agreedAt;
  }

  /** Sets the store's clock wrong, or (0) right. */
  #setStoreClock(errorMs: number): void {
    const { time } = this.#world;
    if (time.storeErrorMs === errorMs) return;
    time.storeErrorMs = errorMs;
    this.#agreedAt = errorMs === 0 ? time.now() + AGREE_MS : Number.POSITIVE_INFINITY;
  }

  get #accepting(): SimulatedProcess[] {
    return this.#world.running.filter((process) => !this.#stopped.has(process));
  }

  #publishSome(): void {
    const { random } = this.#world;
    for (let i = random.integer(0, 6); i > 0; i -= 1) {
      // Sometimes a large fan-out, which is written in slices.
      const share = random.chance(0.05) ? random.pick([0.5, 1]) : 0.1;
      const targets = this.#endpoints.filter(() => random.chance(share)).map(({ id }) => id);
      if (targets.length === 0) continue;
      const commitMs = random.chance(0.3) ? random.between(0, 6_000) : 0;
      const accepting = this.#accepting;
      if (random.chance(0.1)) this.#world.publishToOutbox(targets, commitMs);
      else if (accepting.length === 0 || random.chance(0.1)) this.#world.commitUnannounced(targets, commitMs);
      else if (random.chance(0.3)) this.#publishUntilAccepted(targets);
      else this.#world.publish(targets, random.pick(accepting));
    }
  }

  /** A careful producer: repeats the event with the same key, at any process, until it is accepted. */
  #publishUntilAccepted(targets: readonly Uuid[]): void {
    const { random, time } = this.#world;
    this.#keys += 1;
    const key = `key-${this.#keys}`;
    const post = (): void => {
      const accepting = this.#accepting;
      const publication: Publication | null =
        accepting.length === 0 ? null : this.#world.publish(targets, random.pick(accepting), key);
      time.after(PRODUCER_TIMEOUT_MS, null, () => {
        if (publication?.accepted == null) post();
      });
    };
    post();
  }

  async #causeFault(): Promise<void> {
    const { random, time, weather, running } = this.#world;
    const victim = running.length === 0 ? null : random.pick(running);
    const { id } = random.pick(this.#endpoints);
    switch (random.integer(0, 19)) {
      case 19:
        // Rows are slow to write: large batches exceed the statement timeout.
        weather.rowMs = random.pick([20, 300, 1_500]);
        time.after(random.between(1_000, 15_000), null, () => {
          weather.rowMs = 0;
        });
        break;
      case 18:
        weather.lockedEndpoint = id;
        time.after(random.between(100, 10_000), null, () => {
          weather.lockedEndpoint = null;
        });
        break;
      case 17:
        if (this.#options.hasClockSteps !== false) this.#stepStoreClock();
        break;
      case 16:
        // What it misses is skipped, also if the event comes from the outbox or was matched before.
        this.#world.disable(id);
        time.after(random.between(100, 10_000), null, () => this.#world.enable(id));
        break;
      case 15:
        await this.#probeSome();
        break;
      case 14:
        // The clock of its machine jumps by days, for a moment or for good.
        if (victim !== null) {
          const before = victim.process.clockErrorMs;
          victim.process.clockErrorMs += random.pick([-1, 1]) * 40 * 86_400_000;
          if (random.chance(0.7))
            time.after(random.between(50, 15_000), null, () => {
              victim.process.clockErrorMs = before;
            });
        }
        break;
      case 0:
        if (victim !== null) this.#world.crash(victim);
        break;
      case 1:
        if (victim !== null) {
          time.pause(victim.process);
          time.after(random.between(200, 15_000), null, () => time.resume(victim.process));
        }
        break;
      case 2:
      case 3:
        if (this.#mayStart && this.#world.processes.filter(({ isDead }) => !isDead).length < 5)
          await this.#addProcess(random.chance(0.2) ? 'api' : 'all');
        break;
      case 4: {
        const slowMs = random.between(50, 2_500);
        weather.latencyMs = () => (random.chance(0.5) ? random.between(1, slowMs) : 2);
        break;
      }
      case 5: {
        const share = random.between(0.01, 0.2);
        const faults = [
          'lost_request',
          'lost_answer',
          'lost_answer',
          'conflict',
          'unavailable',
          'timeout',
        ] as const;
        weather.fault = () => (random.chance(share) ? random.pick(faults) : 'none');
        break;
      }
      case 6: {
        const calm = calmWeather(random);
        Object.assign(weather, { latencyMs: calm.latencyMs, fault: calm.fault });
        weather.losesMessage = () => random.chance(0.3);
        break;
      }
      case 7:
        this.#world.change(id, { paused: true });
        time.after(random.between(100, 10_000), null, () => this.#world.change(id, { paused: false }));
        break;
      case 8:
        if (victim !== null && running.length > 1 && !this.#stopped.has(victim)) {
          this.#stopped.add(victim);
          await time.inside(victim.process, () => void victim.stop());
        }
        break;
      case 9: {
        const added = this.#addEndpoint();
        for (let i = random.integer(0, 10); i > 0; i -= 1) this.#publishUntilAccepted([added.id]);
        break;
      }
      case 10:
        if (victim !== null) this.#cutOff(victim);
        break;
      case 11:
        weather.connectMs = () => (random.chance(0.2) ? random.between(1, 900) : 0);
        weather.commitMs = () => (random.chance(0.1) ? random.between(0, 6_000) : 0);
        break;
      case 12:
        if (victim !== null) await time.inside(victim.process, () => victim.notifier.breakConnection());
        break;
      case 13:
        await this.#replaySome();
    }
  }

  /** The store's clock is wrong by days for a while, unless it is wrong already. */
  #stepStoreClock(): void {
    const { random, time } = this.#world;
    const days = random.pick([-40, 40]);
    const longestMs = this.#options.hasLongSteps ? 60_000 : 10_000;
    const forMs = random.pick([random.between(50, 1_000), random.between(1_000, longestMs)]);
    if (time.storeErrorMs !== 0) return;
    this.#setStoreClock(days * 86_400_000);
    time.after(forMs, null, () => this.#setStoreClock(0));
  }

  /** Ends the session of a process in the store. The process notices at once, or only at its next call. */
  #cutOff({ workerId }: SimulatedProcess): void {
    const { random, store } = this.#world;
    if (random.chance(0.5)) store.breakSession(workerId);
    else store.endSession(workerId);
  }

  /** Somebody requests probes of some endpoints, whatever the state of their circuits. */
  async #probeSome(): Promise<void> {
    const { random, time } = this.#world;
    const accepting = this.#accepting;
    if (accepting.length === 0) return;
    const by = random.pick(accepting);
    const chosen = this.#endpoints.filter(() => random.chance(0.4));
    await time.inside(by.process, () => {
      for (const { id } of chosen)
        void by.queue.requestProbe(id).then(
          () => by.notifier.publish('probes', [null]),
          () => {},
        );
    });
  }

  /** Replays some deliveries, in any state. */
  async #replaySome(): Promise<void> {
    const { random, time, accepted, checks } = this.#world;
    const accepting = this.#accepting;
    const candidates = random.chance(0.5) ? checks.onWire : [...accepted.keys()];
    const chosen = candidates
      .filter(() => random.chance(5 / candidates.length))
      .map((id) => ({ id, endpointId: accepted.get(id)!.endpointId }));
    if (chosen.length === 0 || accepting.length === 0) return;
    const by = random.pick(accepting);
    await time.inside(by.process, () => {
      const wake = { endpointIds: chosen.map(({ endpointId }) => endpointId), scope: 'recent' as const };
      void by.queue.replay(chosen, by.clock.latestNow()).then(
        () => by.notifier.publish('wake', [wake]),
        () => {},
      );
    });
  }

  /** Ends all faults and waits until all deliveries have ended. */
  async #calmDown(): Promise<void> {
    const { random, time, store } = this.#world;
    this.#isCalm = true;
    this.#world.weather = calmWeather(random);
    for (const { process } of this.#world.processes) time.resume(process);
    this.#setStoreClock(0);
    if (!this.#mayStart) await this.#world.run(this.#agreedAt - time.now());
    for (const region of this.#regions) await this.#addProcess('all', region);
    const giveUpAt = time.now() + LONGEST_RUN_MS;
    const countLeft = (): number =>
      store.queue.size + store.outbox.size + store.unwrittenSlices.length + this.#world.unstored;
    while (countLeft() > 0 && time.now() < giveUpAt) await this.#world.run(5_000);
    await this.#world.run(PRODUCER_TIMEOUT_MS + 5_000);
    while (countLeft() > 0 && time.now() < giveUpAt) await this.#world.run(5_000);
    this.#world.checkEnd();
  }

  /** Checks that new events are sent promptly again. */
  async #checkPromptness(): Promise<void> {
    const { random, accepted, firstStart } = this.#world;
    const sent = this.#endpoints.map(({ id }) => this.#world.publish([id], random.pick(this.#accepting)));
    await this.#world.run(5_000);
    for (const { deliveryId } of sent) {
      const startedAt = firstStart.get(deliveryId) ?? Number.POSITIVE_INFINITY;
      const waitedMs = startedAt - accepted.get(deliveryId)!.at;
      const { batch, debounce } = this.#endpoints.find(
        ({ id }) => id === accepted.get(deliveryId)!.endpointId,
      )!;
      // An earlier event of its window was sent instead.
      if (this.#world.store.debounced.has(deliveryId)) continue;
      if (waitedMs > 1_000 + (batch?.maxWaitMs ?? debounce?.windowMs ?? 0))
        throw new Violation(`delivery …${deliveryId.slice(-13)} waited ${waitedMs} ms in calm weather`);
    }
    this.#world.checkEnd();
  }
}
