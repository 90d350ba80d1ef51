/** Processes, one store, receivers and producers on virtual time. The seed decides every fault. */

import { BATCH_RESULT_TYPE } from '../../src/domain/batch.ts';
import { type Endpoint, SHARDS, shardOf } from '../../src/domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../../src/domain/endpoint-config.ts';
import type { NewEvent } from '../../src/domain/event.ts';
import { deliveryIdOf, eventIdOfDelivery, newEventId, publicId, type Uuid } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import { createMemoryDeliveryQueue } from '../../src/memory/memory-delivery-queue.ts';
import { createMemoryEventStore } from '../../src/memory/memory-event-store.ts';
import { createMemoryFanOutStore } from '../../src/memory/memory-fan-out-store.ts';
import { MemoryHandOverHub } from '../../src/memory/memory-hand-over.ts';
import { MemoryBus } from '../../src/memory/memory-notifier.ts';
import { MemoryStore } from '../../src/memory/memory-store.ts';
import type { DeliveryQueue } from '../../src/ports/delivery-queue.ts';
import type { EventRecord, EventStore } from '../../src/ports/event-store.ts';
import type { FanOutStore } from '../../src/ports/fan-out-store.ts';
import type { AttemptRequest } from '../../src/ports/stages.ts';
import { findEndViolations } from './end-checks.ts';
import { Publication } from './publication.ts';
import { RequestChecks, type Sender } from './request-checks.ts';
import { SimulatedKafka } from './simulated-kafka.ts';
import { type Limits, type ProcessOptions, SimulatedProcess } from './simulated-process.ts';
import { Random, VirtualTime } from './virtual-time.ts';
import { calmWeather, type Weather } from './weather.ts';

/** The answer of a receiver: its status (null: it never answers) and how long it takes. */
export interface Answer {
  readonly status: number | null;
  readonly afterMs: number;
  readonly retryAfterMs?: number;
  /** Of a batch: the events that failed, in a batch result. */
  readonly failed?: readonly Uuid[];
}

/** `now`: milliseconds since the world began. */
export type Behaviour = (now: number, request: AttemptRequest) => Answer;

export class Violation extends Error {
  override name = 'Violation';
}

export interface WorldOptions {
  readonly limits?: Partial<Limits>;
  /** True: all processes are on one node and hand deliveries over to each other. */
  readonly isOneNode?: boolean;
  /** True: requests are accepted in the accept log, and stored from there. */
  readonly isOnKafka?: boolean;
  /**
   * False: the world checks no request and records no delivery, so that millions of them fit in memory. `checkEnd` and the
   * maps of deliveries are then of no use; the caller takes results from the store and calls `forget`. Default true.
   */
  readonly keepsRecords?: boolean;
}

export const TENANT = 't';
/** How long it takes until the kernel has closed the sockets of a killed process. */
const DEATH_NOTICED_AFTER_MS = 24;
/** Siblings stop handing over to a process that was silent for this long. */
const MAX_SILENCE_MS = 2_000;
const CHUNK_SIZE = 7;

export class World {
  readonly time = new VirtualTime();
  readonly random: Random;
  readonly store: MemoryStore;
  readonly bus: MemoryBus;
  readonly checks: RequestChecks;
  /** Null: requests are stored at once. */
  readonly kafka: SimulatedKafka | null;
  readonly processes: SimulatedProcess[] = [];
  readonly publications: Publication[] = [];
  /** Events that were published through the outbox. */
  readonly outboxIds = new Set<Uuid>();
  /** Every committed delivery and the time of its commit, in order of acceptance. */
  readonly accepted = new Map<Uuid, { endpointId: Uuid; at: number }>();
  readonly firstStart = new Map<Uuid, number>();
  readonly lastStart = new Map<Uuid, number>();
  readonly delivered = new Set<Uuid>();
  /** When deliveries were last replayed that must be sent again. */
  readonly replayed = new Map<Uuid, number>();
  /** When endpoints were last disabled. */
  readonly disabled = new Map<Uuid, number>();
  /** How often each operation of the store was called. */
  readonly calls = new Map<string, number>();
  weather: Weather;
  requests = 0;
  #slowestMs = 0;
  #endpointCount = 0;
  #published = 0;
  readonly #behaviours = new Map<Uuid, Behaviour>();
  readonly #hub: MemoryHandOverHub | null;
  readonly #eventStore: EventStore;
  readonly #fanOuts: FanOutStore;
  readonly #queue: DeliveryQueue;
  readonly #limits: Partial<Limits>;
  readonly #keepsRecords: boolean;

  constructor(
    seed: number,
    { limits = {}, isOneNode = false, isOnKafka = false, keepsRecords = true }: WorldOptions = {},
  ) {
    const { time } = this;
    this.#keepsRecords = keepsRecords;
    this.random = new Random(seed);
    this.weather = calmWeather(this.random);
    this.#limits = limits;
    this.store = new MemoryStore({
      clock: time.storeClock,
      // Whole milliseconds, so that a commit becomes visible exactly when it is answered.
      commitDelayMs: () => Math.ceil(this.weather.commitMs()),
      chunkSize: CHUNK_SIZE,
    });
    const eventStore = createMemoryEventStore(this.store);
    const queue = endFewAtATime(createMemoryDeliveryQueue(this.store));
    this.#eventStore = keepsRecords ? this.#recordCommits(eventStore) : eventStore;
    this.#fanOuts = this.#recordSlices(createMemoryFanOutStore(this.store));
    this.#queue = keepsRecords ? this.#recordBatches(this.#recordReplays(queue)) : queue;
    this.bus = new MemoryBus({
      delayMs: () => (this.weather.losesMessage() ? Number.POSITIVE_INFINITY : this.random.between(0.5, 3)),
    });
    this.kafka = isOnKafka ? new SimulatedKafka(time, () => this.weather) : null;
    this.#hub = isOneNode ? new MemoryHandOverHub(() => this.weather.handOverMs()) : null;
    if (this.#hub !== null)
      this.#hub.isReachable = (member) =>
        this.processes.some(
          ({ handOver, process }) =>
            handOver === member &&
            (process.state === 'running' || time.now() - process.stalledAt < MAX_SILENCE_MS),
        );
    this.checks = new RequestChecks(this.store, time.startedAt, () => this.#slowestMs);
  }

  get running(): SimulatedProcess[] {
    return this.processes.filter(({ isRunning }) => isRunning);
  }

  get duplicates(): number {
    return this.checks.duplicates;
  }

  /** How many records of the accept log are not stored yet, or set aside. */
  get unstored(): number {
    const { partitions, parked } = this.store.kafka;
    const read = partitions.reduce((sum, { position }) => sum + Number(position), 0);
    const written = this.kafka?.ends.reduce((sum, end) => sum + end, 0) ?? 0;
    return written - read + parked.size;
  }

  /** How often lanes were read from the store. */
  get laneReads(): number {
    return this.calls.get('loadLanes') ?? 0;
  }

  // --- endpoints and receivers --------------------------------------------------------------------------------

  addEndpoint(config: EndpointConfig, behaviour: Behaviour, shard?: number): Endpoint {
    this.#endpointCount += 1;
    const tail = (shard ?? (this.#endpointCount * 53) % 256).toString(16).padStart(2, '0');
    const id = `0190aaaa-0000-7000-8000-${String(this.#endpointCount).padStart(10, '0')}${tail}`;
    const url = `https://receiver.test/${this.#endpointCount}`;
    const state = { enabled: true, disabledReason: null, paused: false, deleted: false };
    const shardInRegion =
      config.region === undefined ? null : this.store.regionNumber(config.region) * SHARDS + shardOf(id);
    const place = { shard: shardInRegion, wantedShard: shardInRegion };
    const endpoint = resolveEndpoint({ id, tenant: TENANT, url, config, ...state, ...place }, []);
    this.#behaviours.set(id, behaviour);
    this.store.putEndpoint(endpoint);
    return endpoint;
  }

  change(id: Uuid, part: Partial<Endpoint>): void {
    this.store.putEndpoint({ ...this.store.endpoints.get(id)!.endpoint, ...part });
  }

  disable(id: Uuid): void {
    this.disabled.set(id, this.time.now());
    this.change(id, { enabled: false, disabledReason: 'manual' });
  }

  enable(id: Uuid): void {
    this.change(id, { enabled: true, disabledReason: null });
  }

  #send(from: SimulatedProcess, request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void {
    const connectMs = this.weather.connectMs();
    this.checks.slowestConnectMs = Math.max(this.checks.slowestConnectMs, connectMs);
    const isProbe = from.engine.lanes.get(request.endpoint.id)?.breaker.allowsTraffic === false;
    if (connectMs === 0) return this.#exchange({ from, isProbe }, request, done);
    this.time.after(connectMs, from.process, () => {
      if (request.maySend()) this.#exchange({ from, isProbe }, request, done);
      else done({ ...newOutcome(request.endpoint, this.time.now(), 0), withdrawn: true });
    });
  }

  #exchange(sender: Sender, request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void {
    const { endpoint, deliveryId, batch } = request;
    const { time } = this;
    const now = time.now();
    const answer = this.#behaviours.get(endpoint.id)!(now - time.startedAt, request);
    const members =
      batch === undefined ? [deliveryId] : (this.store.batches.get(batch.id)?.deliveryIds ?? []);
    const { timeoutMs = endpoint.timeoutMs } = request;
    const isTimeout = answer.status === null || answer.afterMs > timeoutMs;
    const durationMs = isTimeout ? timeoutMs : answer.afterMs;
    this.requests += 1;
    if (this.#keepsRecords) {
      this.checks.onSend(sender, request, durationMs);
      if (!isTimeout) this.checks.onAnswer(request, answer);
      for (const member of members) {
        if (!this.firstStart.has(member)) this.firstStart.set(member, now);
        this.lastStart.set(member, now);
        const isAccepted =
          !isTimeout && answer.status! < 300 && !answer.failed?.includes(eventIdOfDelivery(member));
        time.after(durationMs, null, () => void (isAccepted && this.delivered.add(member)));
      }
    }
    const outcome: AttemptOutcome = {
      ...newOutcome(endpoint, now, durationMs),
      ...(answer.failed !== undefined && batchResult(answer.failed)),
      requestHeaders: request.versionHeaders ?? {},
      statusCode: isTimeout ? null : answer.status,
      error: isTimeout ? { class: 'timeout', message: '' } : null,
      retryAfterMs: answer.retryAfterMs ?? null,
    };
    time.after(durationMs, sender.from.process, () => done(outcome));
  }

  // --- processes ----------------------------------------------------------------------------------------------

  async addProcess(options: ProcessOptions = {}): Promise<SimulatedProcess> {
    const name = `${options.role === 'api' ? 'api' : 'worker'}-${this.processes.length}`;
    const added = new SimulatedProcess(
      name,
      {
        time: this.time,
        random: this.random,
        store: this.store,
        eventStore: this.#eventStore,
        fanOuts: this.#fanOuts,
        queue: this.#queue,
        bus: this.bus,
        kafka: this.kafka,
        hub: this.#hub,
        weather: () => this.weather,
        onCall: (operation, latencyMs) => {
          this.calls.set(operation, (this.calls.get(operation) ?? 0) + 1);
          this.#slowestMs = Math.max(this.#slowestMs, latencyMs);
        },
        send: (...sent) => this.#send(...sent),
      },
      { ...options, limits: { ...this.#limits, ...options.limits } },
    );
    this.processes.push(added);
    await this.time.inside(added.process, () => void added.start());
    return added;
  }

  /** SIGKILL. The store and the siblings notice a moment later that its connections are gone. */
  crash(victim: SimulatedProcess): void {
    this.time.kill(victim.process);
    this.time.after(DEATH_NOTICED_AFTER_MS, null, () => {
      this.store.endSession(victim.workerId);
      this.bus.disconnect(victim.notifier);
      if (victim.handOver !== null) this.#hub?.members.delete(victim.handOver);
    });
  }

  async run(ms: number): Promise<void> {
    await this.time.run(ms);
    const { violations } = this.checks;
    if (violations.length > 0) throw new Violation(violations.slice(0, 5).join('\n'));
  }

  // --- producers ----------------------------------------------------------------------------------------------

  /** A producer posts an event for these endpoints to a process. */
  publish(
    endpointIds: readonly Uuid[],
    to: SimulatedProcess,
    idempotencyKey: string | null = null,
  ): Publication {
    const publication = to.post(newEvent(endpointIds, idempotencyKey, this.#nextNumber()));
    if (this.#keepsRecords) this.publications.push(publication);
    return publication;
  }

  /** Removes a delivery that ended from the store. The event stays until `forgetEvent`. */
  forget(deliveryId: Uuid): void {
    const { finished, deadLetters, attempts } = this.store;
    finished.delete(deliveryId);
    deadLetters.delete(deliveryId);
    attempts.delete(deliveryId);
  }

  /** Removes an event of which every delivery ended. */
  forgetEvent(eventId: Uuid): void {
    this.store.events.delete(eventId);
  }

  /** Commits an event without a notification, as a process that dies after the commit. Visible after `commitMs`. */
  commitUnannounced(endpointIds: readonly Uuid[], commitMs = 0): Publication {
    const { store, time } = this;
    const id = newEventId(Math.floor(time.now()));
    const isEnabled = (endpointId: Uuid): boolean => store.endpoints.get(endpointId)!.endpoint.enabled;
    const [enabled, disabled] = [
      endpointIds.filter(isEnabled),
      endpointIds.filter((each) => !isEnabled(each)),
    ];
    const deliveries = enabled.map((endpointId, ordinal) => {
      const fifo = store.endpoints.get(endpointId)!.endpoint.ordering === 'fifo';
      return { id: deliveryIdOf(id, ordinal), endpointId, dueAt: null, fifo };
    });
    const skipped = disabled.map((endpointId, index) => ({
      id: deliveryIdOf(id, enabled.length + index),
      endpointId,
    }));
    const event = newEvent(endpointIds, null, this.#nextNumber());
    const { tenant, type, data } = event;
    const record: EventRecord = {
      id,
      tenant,
      type,
      data,
      idempotencyKey: null,
      fingerprint: null,
      options: { endpoint_ids: endpointIds, ...(skipped.length > 0 && { skipped: skipped.length }) },
      deliveries,
      skipped,
    };
    const usualDelay = store.commitDelayMs;
    store.commitDelayMs = () => Math.ceil(commitMs);
    const options = { mayBeStored: false, idempotencyTtlMs: 0, outboxSeqs: null };
    void this.#eventStore.append([record], { ...options, endpointVersion: store.endpointVersion });
    store.commitDelayMs = usualDelay;
    const publication = new Publication(event);
    publication.recordAccepted({ id, deliveries: deliveries.length }, time.now());
    return publication;
  }

  /** A customer's own transaction publishes an event; its commit becomes visible after `commitMs`. */
  publishToOutbox(endpointIds: readonly Uuid[], commitMs = 0): void {
    const { store, time } = this;
    const { tenant, type, data } = newEvent(endpointIds, null, this.#nextNumber());
    const id = newEventId(Math.floor(store.now()));
    const row = { id, tenant, type, data, idempotencyKey: null, options: { endpoint_ids: endpointIds } };
    store.publish(row, time.now() + Math.ceil(commitMs));
    this.outboxIds.add(id);
  }

  #recordCommits(eventStore: EventStore): EventStore {
    return {
      ...eventStore,
      append: async (events, options) => {
        const result = await eventStore.append(events, options);
        if (result.stale) return result;
        for (const { id, deliveries } of events) {
          if (result.written !== 'all' && !result.written.has(id)) continue;
          for (const { id: deliveryId, endpointId } of deliveries)
            this.accepted.set(deliveryId, { endpointId, at: this.time.now() });
        }
        return result;
      },
    };
  }

  #recordSlices(fanOuts: FanOutStore): FanOutStore {
    return {
      ...fanOuts,
      write: async (slice, deliveries, endpointVersion) => {
        const result = await fanOuts.write(slice, deliveries, endpointVersion);
        if (result === 'written')
          for (const { id, endpointId } of deliveries.waiting)
            this.accepted.set(id, { endpointId, at: this.time.now() });
        return result;
      },
    };
  }

  /** The replay of a delivery that is due and was not attempted since its schedule began changes nothing. */
  #recordReplays(queue: DeliveryQueue): DeliveryQueue {
    return {
      ...queue,
      replay: async (deliveries, now = 0) => {
        const storeNow = Math.floor(Math.max(this.store.now(), now));
        const fresh = new Set(
          deliveries.flatMap(({ id }) => {
            const row = this.store.queue.get(id);
            if (row === undefined) return [];
            const isDue = (row.dueAt ?? 0) <= storeNow;
            return isDue && row.attempts <= row.attemptsBeforeReplay ? [id] : [];
          }),
        );
        const moved = await queue.replay(deliveries, now);
        for (const id of moved) {
          this.checks.replays.set(id, this.time.now());
          if (!fresh.has(id)) this.replayed.set(id, this.time.now());
        }
        return moved;
      },
    };
  }

  #recordBatches(queue: DeliveryQueue): DeliveryQueue {
    return {
      ...queue,
      recordBatches: async (starts, ended, workerId) => {
        const allowed = await queue.recordBatches(starts, ended, workerId);
        for (const { id, members } of starts)
          if (allowed.has(id)) this.checks.recordedBatches.set(id, members);
        return allowed;
      },
    };
  }

  #nextNumber(): number {
    this.#published += 1;
    return this.#published;
  }

  /** Throws a `Violation` if anything is lost or left over. */
  checkEnd(): void {
    const problems = findEndViolations(this);
    if (problems.length > 0) throw new Violation(problems.slice(0, 8).join('\n'));
  }
}

/** So that storms have debounce groups that end in several calls. */
const endFewAtATime = (queue: DeliveryQueue): DeliveryQueue => ({
  ...queue,
  decideDebounce: (request) => queue.decideDebounce({ ...request, maxEnded: 2 }),
});

const batchResult = (failed: readonly Uuid[]) => ({
  responseHeaders: { 'content-type': BATCH_RESULT_TYPE },
  responseBody: Buffer.from(JSON.stringify({ failed: failed.map((id) => publicId('evt', id)) })),
});

const newOutcome = ({ url }: Endpoint, startedAt: number, durationMs: number): AttemptOutcome => ({
  startedAt,
  durationMs,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
  statusCode: null,
  error: null,
  url,
  requestHeaders: {},
  responseHeaders: null,
  responseBody: null,
  responseTruncated: false,
  retryAfterMs: null,
});

/** A few debounce keys, in turn, so that events of one key are close together. */
const keyOf = (number: number): number => Math.floor(number / 4) % 5;

const newEvent = (endpointIds: readonly Uuid[], idempotencyKey: string | null, number: number): NewEvent => ({
  tenant: TENANT,
  type: 'x',
  data: Buffer.from(`{"number":${number},"key":${keyOf(number)}}`),
  idempotencyKey,
  schemaVersion: null,
  channels: [],
  endpointIds,
  deliverAt: null,
  headers: null,
});
