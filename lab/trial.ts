/**
 * One policy for weeks of virtual time: the real accept stage and the real engine, with the default settings of the
 * product, send the traffic of `traffic.ts` to the receivers of `receivers.ts`.
 */
import { loadConfig } from '../src/config/index.ts';
import type { EndpointConfig } from '../src/domain/endpoint-config.ts';
import type { NewEvent } from '../src/domain/event.ts';
import { eventIdOfDelivery, timeOfId, type Uuid } from '../src/domain/ids.ts';
import type { FinishedDelivery } from '../src/memory/rows.ts';
import { autoDisable } from '../src/upkeep/auto-disable.ts';
import type { SimulatedProcess } from '../test/simulation/simulated-process.ts';
import { TENANT, World } from '../test/simulation/world.ts';
import { EndingsStore } from './endings-store.ts';
import type { ClassName } from './fault-models.ts';
import { identityOf } from './plain-loop.ts';
import { buildReceivers, type EndpointCounts, type FaultScales, type Receiver } from './receivers.ts';
import { Tally, type TrialResult } from './tally.ts';
import { Traffic } from './traffic.ts';

/** What is done with an endpoint and its deliveries. */
export interface Policy {
  /** Tells policies apart in tables, plots and tests. */
  readonly id: string;
  readonly endpoint: Pick<EndpointConfig, 'retry' | 'breaker' | 'timeout_ms'>;
  /** False: `Retry-After` of an answer is ignored. */
  readonly honoursRetryAfter?: boolean;
  /** True: each morning an operator replays what died or was skipped at endpoints that work again. */
  readonly replays?: boolean;
  /**
   * Which rules disable an endpoint. "never": none. "failing": only that every attempt has failed for five days. Default: also that
   * more than half of the deliveries of a day died.
   */
  readonly disabling?: 'never' | 'failing' | 'default';
}

export interface Scale {
  readonly seed: number;
  readonly days: number;
  /** Deliveries per endpoint and hour. */
  readonly perEndpointHour: number;
  readonly endpoints: EndpointCounts;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Nothing waits longer than the maximum age after the last event, and a day for replays. */
const LONGEST_DRAIN_MS = 5 * DAY_MS;
/** The operator comes to work. */
const MORNING_HOUR = 9;
const REPLAYS_PER_CALL = 1_000;

/** How long the receivers must exist: until the last delivery ended. */
export const lengthOf = ({ days }: Pick<Scale, 'days'>): number => days * DAY_MS + LONGEST_DRAIN_MS;

/** The defaults of the product, except for timers that do nothing in a world without crashes and lost messages. */
const config = loadConfig({ mode: 'serve', env: {} });
const LIMITS = {
  ...config,
  deliveriesPerCommit: 2_000,
  heartbeatMs: 10 * MINUTE_MS,
  proofMs: HOUR_MS,
  deadAfterMs: 4 * HOUR_MS,
  sweepMs: HOUR_MS,
};

export async function runTrial(policy: Policy, scale: Scale, scales: FaultScales): Promise<TrialResult> {
  const trial = new Trial(policy, scale, scales);
  await trial.run();
  return trial.result();
}

class Trial {
  readonly #policy: Policy;
  readonly #scale: Scale;
  readonly #world: World;
  readonly #traffic: Traffic;
  readonly #receivers = new Map<Uuid, Receiver>();
  readonly #ids: Uuid[] = [];
  readonly #tally = new Tally();
  readonly #endings: EndingsStore;
  /** Deliveries of each event that have not been counted yet. */
  readonly #open = new Map<Uuid, number>();
  #worker!: SimulatedProcess;
  /** When the first event may be published. */
  #beganAt = 0;

  constructor(policy: Policy, scale: Scale, scales: FaultScales) {
    this.#policy = policy;
    this.#scale = scale;
    const retryAfterCapMs = policy.honoursRetryAfter === false ? 0 : config.retryAfterCapMs;
    this.#world = new World(scale.seed, { limits: { ...LIMITS, retryAfterCapMs }, keepsRecords: false });
    this.#world.weather.latencyMs = () => 2;
    this.#traffic = new Traffic(scale);
    this.#endings = new EndingsStore(this.#world);
    for (const receiver of buildReceivers({ ...scale, lengthMs: lengthOf(scale) }, scales))
      this.#add(receiver);
  }

  #add(receiver: Receiver): void {
    const counts = this.#tally.of(receiver.className);
    const settings = { ...this.#policy.endpoint, events: [typeOf(receiver.index)] };
    const { id } = this.#world.addEndpoint(settings, (_, { deliveryId, number }) => {
      const acceptedAt = timeOfId(deliveryId) - this.#beganAt;
      const answer = receiver.answer(this.#now, identityOf(acceptedAt, number));
      counts.requests += 1;
      return answer;
    });
    this.#receivers.set(id, receiver);
    this.#ids.push(id);
  }

  /** Milliseconds since the first event may be published. */
  get #now(): number {
    return this.#world.time.now() - this.#beganAt;
  }

  async run(): Promise<void> {
    const { time, store } = this.#world;
    this.#worker = await this.#world.addProcess({ pollsStore: false });
    await this.#world.run(2_000);
    this.#beganAt = time.now();
    store.partitions.untilMs = this.#beganAt + 2 * lengthOf(this.#scale);
    this.#publishNext(this.#traffic.groups(this.#ids.length));
    const until = this.#traffic.lengthMs;
    while (this.#now < until || (store.queue.size > 0 && this.#now < until + LONGEST_DRAIN_MS)) {
      await this.#world.run(HOUR_MS);
      await this.#onHour();
    }
    if (this.#policy.replays) await this.#drainReplays();
    this.#harvest(true);
  }

  #publishNext(groups: ReturnType<Traffic['groups']>): void {
    const { value } = groups.next();
    if (!value) return;
    this.#world.time.after(value.at - this.#now, null, () => {
      for (const index of value.endpoints) this.#worker.post(eventFor(index));
      this.#publishNext(groups);
    });
  }

  async #onHour(): Promise<void> {
    this.#harvest(false);
    if (this.#policy.disabling !== 'never') await this.#disableFailing();
    if (Math.floor(this.#now / HOUR_MS) % 24 === MORNING_HOUR) await this.#operate();
  }

  /** The rule of the product, on the deliveries of the lab. */
  async #disableFailing(): Promise<void> {
    const disabled = await autoDisable(this.#endings, {
      deadRate: this.#policy.disabling === 'failing' ? Number.POSITIVE_INFINITY : config.autoDisableDeadRate,
      minDeliveries: scaledMinDeliveries(this.#scale),
      minMs: config.autoDisableDeadMs,
      failingMs: config.autoDisableFailingMs,
    });
    for (const { id } of disabled) this.#tally.of(this.#receivers.get(id)!.className).disabled += 1;
  }

  /** Each morning the owners enable endpoints that work again. Those who replay do so, too. */
  async #operate(): Promise<void> {
    const { endpoints } = this.#world.store;
    for (const [id, receiver] of this.#receivers) {
      if (!receiver.isHealthyAt(this.#now)) continue;
      if (!endpoints.get(id)!.endpoint.enabled) this.#world.enable(id);
    }
    if (!this.#policy.replays) return;
    // The worker must know that they are enabled.
    await this.#world.run(2 * LIMITS.heartbeatMs);
    const { deadLetters, finished } = this.#world.store;
    const missed = [...deadLetters.values(), ...finished.values()].filter(({ endpointId }) =>
      this.#receivers.get(endpointId)!.isHealthyAt(this.#now),
    );
    for (let first = 0; first < missed.length; first += REPLAYS_PER_CALL)
      await this.#replay(missed.slice(first, first + REPLAYS_PER_CALL));
  }

  async #replay(missed: readonly { readonly id: Uuid; readonly endpointId: Uuid }[]): Promise<void> {
    const { queue, notifier, process } = this.#worker;
    const endpointIds = [...new Set(missed.map(({ endpointId }) => endpointId))];
    await this.#world.time.inside(process, () => {
      void queue.replay(missed).then(() => notifier.publish('wake', [{ endpointIds, scope: 'recent' }]));
    });
    await this.#world.run(MINUTE_MS);
  }

  /** After the end, the operator still comes for some days. */
  async #drainReplays(): Promise<void> {
    const until = lengthOf(this.#scale);
    while (this.#now < until) {
      await this.#world.run(HOUR_MS);
      await this.#onHour();
    }
  }

  /** Counts what ended and removes it from the store, so that memory does not grow with the length of the run. */
  #harvest(isEnd: boolean): void {
    const { finished, deadLetters } = this.#world.store;
    const keepsMissed = this.#policy.replays === true && !isEnd;
    for (const row of finished.values()) {
      if (row.status === 'delivered') this.#countDelivered(row);
      else if (keepsMissed) continue;
      else this.#tally.of(this.#classOf(row.endpointId)).skipped += 1;
      this.#forget(row.id);
    }
    for (const row of deadLetters.values()) {
      this.#endings.recordDead(row);
      if (keepsMissed) continue;
      const counts = this.#tally.of(this.#classOf(row.endpointId));
      counts.dead[row.reason] = (counts.dead[row.reason] ?? 0) + 1;
      this.#forget(row.id);
    }
    if (!isEnd) return;
    for (const { endpointId } of this.#world.store.queue.all())
      this.#tally.of(this.#classOf(endpointId)).waiting += 1;
  }

  #countDelivered({ id, endpointId, attempts, replays, finishedAt }: FinishedDelivery): void {
    this.#endings.recordDelivered(endpointId, finishedAt);
    const waitedSeconds = (finishedAt - timeOfId(id)) / 1000;
    this.#tally.of(this.#classOf(endpointId)).addDelivered(attempts, replays, waitedSeconds);
  }

  #classOf(endpointId: Uuid): ClassName {
    return this.#receivers.get(endpointId)!.className;
  }

  #forget(deliveryId: Uuid): void {
    const eventId = eventIdOfDelivery(deliveryId);
    const event = this.#world.store.events.get(eventId);
    const skipped = (event?.options?.skipped as number | undefined) ?? 0;
    const open = (this.#open.get(eventId) ?? (event?.deliveries ?? 1) + skipped) - 1;
    this.#world.forget(deliveryId);
    this.#endings.forget(deliveryId);
    if (open > 0) this.#open.set(eventId, open);
    else {
      this.#open.delete(eventId);
      this.#world.forgetEvent(eventId);
    }
  }

  result(): TrialResult {
    return this.#tally.result(this.#policy.id, this.#scale);
  }
}

/** Each endpoint has a type. Events do not name endpoints, because Posthorn refuses those that name a disabled one. */
const typeOf = (index: number): string => `endpoint.${index}`;

const DATA = Buffer.from('{"order":1}');

const eventFor = (index: number): NewEvent => ({
  tenant: TENANT,
  type: typeOf(index),
  data: DATA,
  idempotencyKey: null,
  schemaVersion: null,
  channels: [],
  endpointIds: null,
  deliverAt: null,
  headers: null,
});

/**
 * The rule to disable an endpoint needs 50 deliveries in a day. A sample has fewer deliveries, so it needs fewer of them;
 * below eight, chance would decide.
 */
function scaledMinDeliveries({ perEndpointHour }: Scale): number {
  const sampled = Math.round((config.autoDisableMinDeliveries * perEndpointHour) / 100);
  return Math.min(config.autoDisableMinDeliveries, Math.max(8, sampled));
}
