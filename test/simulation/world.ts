/**
 * Workers, receivers and producers in one virtual world, with everything that reaches a receiver watched: what the
 * requirements promise about a single request is checked the moment it starts, what they promise about the whole at
 * the end.
 */
import type { AttemptRequest } from '../../src/dispatch/attempts.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import { shardOf } from '../../src/domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../../src/domain/endpoint-config.ts';
import type { EventContent } from '../../src/domain/event.ts';
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import type { NewDelivery } from '../../src/ports/accept-log.ts';
import type { Commit } from '../../src/ports/hand-over.ts';
import { MemoryDatabase, type Weather } from './memory-database.ts';
import { Random, VirtualTime } from './virtual-time.ts';
import { EndpointTable, LIMITS, type Limits, Worker } from './worker.ts';

/** What a receiver does with a request: the status, or null if it never answers, and how long that takes. */
export interface Answer {
  readonly status: number | null;
  readonly afterMs: number;
  readonly retryAfterMs?: number;
}

export interface Receiver {
  readonly endpointId: Uuid;
  behaviour: (now: number) => Answer;
}

interface Wire {
  readonly deliveryId: Uuid;
  readonly number: number;
  readonly worker: Worker;
  readonly epoch: number;
  readonly start: number;
  readonly end: number;
  readonly probe: boolean;
}

export class Violation extends Error {
  override name = 'Violation';
}

export const CALM: Omit<Weather, 'latency'> = { fault: () => 'none', loseWake: () => false };

export class World {
  readonly time = new VirtualTime();
  readonly random: Random;
  readonly database: MemoryDatabase;
  readonly table: EndpointTable;
  readonly workers: Worker[] = [];
  /** How long the way from one process of a node to another takes. Null: they are on nodes of their own. */
  toSiblingMs: (() => number) | null = null;
  readonly receivers = new Map<Uuid, Receiver>();
  /** Everything that was committed, with when. */
  readonly accepted = new Map<Uuid, { endpointId: Uuid; at: number }>();
  readonly firstStart = new Map<Uuid, number>();
  readonly delivered = new Set<Uuid>();
  readonly #wires = new Map<Uuid, Wire[]>();
  readonly #lastOf = new Map<string, Wire>();
  readonly #rate = new Map<Uuid, { count: number; lowest: number }>();
  readonly #limits: Limits;
  #events = 0;
  #endpoints = 0;
  requests = 0;
  duplicates = 0;
  violations: string[] = [];

  constructor(seed: number, limits: Partial<Limits> = {}) {
    this.random = new Random(seed);
    this.#limits = { ...LIMITS, ...limits };
    this.database = new MemoryDatabase(this.time, this.random, {
      latency: () => this.random.between(0.5, 4),
      ...CALM,
    });
    this.table = new EndpointTable(this.database);
  }

  get wires(): ReadonlyMap<Uuid, readonly Wire[]> {
    return this.#wires;
  }

  addEndpoint(
    config: EndpointConfig,
    behaviour: Receiver['behaviour'],
    tenant = 't',
    shard?: number,
  ): Endpoint {
    this.#endpoints += 1;
    const tail = (shard ?? (this.#endpoints * 53) % 256).toString(16).padStart(2, '0');
    const id = `0190aaaa-0000-7000-8000-${String(this.#endpoints).padStart(10, '0')}${tail}`;
    const record = {
      id,
      tenant,
      url: `https://receiver.test/${this.#endpoints}`,
      config,
      enabled: true,
      disabledReason: null,
      paused: false,
      deleted: false,
    };
    const endpoint = resolveEndpoint(record, []);
    this.database.endpointMadeAt.set(id, this.time.now());
    this.table.put(endpoint);
    this.receivers.set(id, { endpointId: id, behaviour });
    return endpoint;
  }

  change(id: Uuid, part: Partial<Endpoint>): void {
    this.table.put({ ...this.table.rows.get(id)!.endpoint, ...part });
  }

  async addWorker(): Promise<Worker> {
    const worker = new Worker(`w${this.workers.length}`, this.database, this.table, this.#limits, {
      send: (from, request, done) => this.#send(from, request, done),
      handOver: (...offered) => this.#toSibling(...offered),
    });
    this.workers.push(worker);
    await this.time.inside(worker.process, () => void worker.start());
    return worker;
  }

  #toSibling(from: Worker, delivery: NewDelivery, event: EventContent, commit: Commit): boolean {
    if (this.toSiblingMs === null) return false;
    const shard = shardOf(delivery.endpointId);
    const to = this.workers.find(
      (worker) =>
        worker !== from && worker.process.state !== 'dead' && worker.ownership.keptShards.includes(shard),
    );
    if (to === undefined) return false;
    this.time.after(this.toSiblingMs(), to.process, () => to.receive([{ delivery, event }], commit));
    return true;
  }

  crash(worker: Worker): void {
    this.time.kill(worker.process);
    this.time.after(24, null, () => this.database.disconnect(worker.process));
  }

  get running(): Worker[] {
    return this.workers.filter(({ process }) => process.state === 'running');
  }

  async run(ms: number): Promise<void> {
    await this.time.runUntil(this.time.now() + ms);
    if (this.violations.length > 0) throw new Violation(this.violations.slice(0, 5).join('\n'));
  }

  /** A process accepts an event for these endpoints; `commitMs` later it is committed, and handed on. */
  publish(
    endpointIds: readonly Uuid[],
    by: Worker | null,
    commitMs = this.database.weather.latency(),
  ): Uuid[] {
    const { time, database } = this;
    const eventId = this.#newEventId();
    const sentAt = time.now();
    const committedAt = sentAt + commitMs;
    const deliveries = endpointIds
      .filter((id) => this.table.rows.get(id)!.endpoint.enabled)
      .map((endpointId, ordinal) => {
        const { endpoint } = this.table.rows.get(endpointId)!;
        database.seq += 1;
        const id = deliveryIdOf(eventId, ordinal);
        const fifo = endpoint.ordering === 'fifo';
        database.add({
          id,
          endpointId,
          seq: database.seq,
          fifo,
          visibleAt: committedAt,
          dueAt: null,
          startedAt: null,
          attempts: 0,
          carefulStarts: 0,
        });
        this.accepted.set(id, { endpointId, at: committedAt });
        return { id, endpointId, dueAt: null, fifo };
      });
    if (by !== null) {
      const event = {
        id: eventId,
        tenant: 't',
        type: 'x',
        data: Buffer.from('{"a":1}'),
        idempotencyKey: null,
        schemaVersion: null,
        headers: null,
      };
      time.after(commitMs, by.process, () => {
        const committed = deliveries.map((delivery) => ({ delivery, event }));
        by.engine.router.routeCommitted(committed, { sentAt, endpointVersion: by.cache.version });
      });
    }
    return deliveries.map(({ id }) => id);
  }

  #newEventId(): Uuid {
    this.#events += 1;
    const ms = Math.floor(this.time.now()).toString(16).padStart(12, '0');
    const count = this.#events.toString(16).padStart(8, '0');
    return `${ms.slice(0, 8)}-${ms.slice(8)}-7000-8000-${count}0000`;
  }

  #send(worker: Worker, request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void {
    const { endpoint, deliveryId, number } = request;
    const now = this.time.now();
    const answer = this.receivers.get(endpoint.id)!.behaviour(now);
    const timedOut = answer.status === null || answer.afterMs > endpoint.timeoutMs;
    const durationMs = timedOut ? endpoint.timeoutMs : answer.afterMs;
    const lane = worker.engine.lanes.get(endpoint.id);
    const wire: Wire = {
      deliveryId,
      number,
      worker,
      epoch: this.database.shards[shardOf(endpoint.id)]!.epoch,
      start: now,
      end: now + durationMs,
      probe: lane?.breaker.allowsTraffic === false,
    };
    this.#check(endpoint, wire);
    this.requests += 1;
    const wires = this.#wires.get(endpoint.id) ?? [];
    this.#wires.set(endpoint.id, [...wires.filter(({ end }) => end > now), wire]);
    this.#lastOf.set(`${deliveryId} ${number}`, wire);
    if (!this.firstStart.has(deliveryId)) this.firstStart.set(deliveryId, now);
    this.time.after(durationMs, null, () => {
      if (!timedOut && answer.status! < 300) this.delivered.add(deliveryId);
    });
    this.time.after(durationMs, worker.process, () =>
      done({
        startedAt: now,
        durationMs,
        timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
        statusCode: timedOut ? null : answer.status,
        error: timedOut ? { class: 'timeout', message: '' } : null,
        url: endpoint.url,
        requestHeaders: {},
        responseHeaders: null,
        responseBody: null,
        responseTruncated: false,
        retryAfterMs: answer.retryAfterMs ?? null,
      }),
    );
  }

  #violated(what: string, wire: Wire, endpoint: Endpoint): void {
    const at = ((wire.start - 1_800_000_000_000) / 1000).toFixed(3);
    this.violations.push(
      `${at} s: ${what} (${wire.worker.process.name}, endpoint …${endpoint.id.slice(-6)}, delivery …${wire.deliveryId.slice(-13)}, attempt ${wire.number})`,
    );
  }

  #check(endpoint: Endpoint, wire: Wire): void {
    const { database } = this;
    const shard = database.shards[shardOf(endpoint.id)]!;
    const now = wire.start;
    const uncleanSince = (at: number) => shard.uncleanAt.some((unclean) => unclean >= at);
    if (!this.accepted.has(wire.deliveryId)) this.#violated('sent what was never accepted', wire, endpoint);
    if (shard.owner !== wire.worker.ownership.workerId) this.#violated('start without proof', wire, endpoint);

    const before = this.#lastOf.get(`${wire.deliveryId} ${wire.number}`);
    if (before !== undefined) {
      this.duplicates += 1;
      // Its first sender died, was stopped, or could not say that it had a request on the wire when it gave the shard up.
      const lostMark = before.worker.problems.get('hand over requests on the wire') ?? 0;
      const stalled = Math.max(before.worker.process.stalledAt, lostMark) >= before.start;
      // Or its outcome took longer to be written than the next owner waits for it.
      const slow = database.slowestMs > 500 && now > before.end + 1_500;
      if (!uncleanSince(before.start) && !stalled && !slow)
        this.#violated('sent twice though nobody died', wire, endpoint);
    }
    const onWire = (this.#wires.get(endpoint.id) ?? []).filter(({ end }) => end > now);
    if (onWire.some(({ deliveryId, epoch }) => deliveryId === wire.deliveryId && epoch === wire.epoch))
      this.#violated('the same delivery twice at once', wire, endpoint);
    // What earlier owners have on the wire does not count for the new one, until its deadline.
    const owners = new Set([wire, ...onWire].map(({ epoch }) => epoch)).size;
    if (onWire.length + 1 > endpoint.maxInFlight * owners)
      this.#violated(`${onWire.length + 1} at once`, wire, endpoint);
    if (wire.probe && onWire.some(({ probe }) => probe)) this.#violated('two probes at once', wire, endpoint);
    if (endpoint.ordering === 'fifo') this.#checkOrder(endpoint, wire, onWire);
    if (endpoint.rateLimit !== null) this.#checkRate(endpoint, wire);
    if (!endpoint.enabled || endpoint.paused)
      this.#violated('sent to an endpoint that is off', wire, endpoint);
  }

  #checkOrder(endpoint: Endpoint, wire: Wire, onWire: readonly Wire[]): void {
    if (onWire.length > 0) this.#violated('two of a FIFO endpoint at once', wire, endpoint);
    const own = this.database.queue.get(wire.deliveryId);
    // Once it has begun it keeps its place, whatever turns up with an earlier number.
    if (wire.number > 1) return;
    // What was committed a moment ago under an earlier number may not have been seen yet.
    const earlier = this.database
      .waitingOf(endpoint.id)
      .find((row) => own !== undefined && row.seq < own.seq && row.visibleAt < wire.start - 12_000);
    if (earlier !== undefined) this.#violated('out of order', wire, endpoint);
  }

  #checkRate(endpoint: Endpoint, wire: Wire): void {
    const { perSecond, burst } = endpoint.rateLimit!;
    const rate = this.#rate.get(endpoint.id) ?? { count: 0, lowest: Number.POSITIVE_INFINITY };
    rate.count += 1;
    const level = rate.count - (perSecond * wire.start) / 1000;
    rate.lowest = Math.min(rate.lowest, level);
    // A token is taken when it is its turn; reading the payload and writing the start down delay what then leaves.
    const delayed = (perSecond * 4 * this.database.slowestMs) / 1000;
    if (level - rate.lowest + 1 > Math.max(1, burst) + delayed + 0.01)
      this.#violated('over its rate', wire, endpoint);
    this.#rate.set(endpoint.id, rate);
  }

  /** Nothing is lost, nothing is left over. */
  checkEnd(): void {
    const problems: string[] = [];
    for (const [id, { endpointId, at }] of this.accepted) {
      const row = this.database.ended.get(id);
      if (row === undefined) {
        const seconds = ((this.time.now() - at) / 1000).toFixed(0);
        const waiting = this.database.queue.get(id)!;
        problems.push(
          `lost: delivery …${id.slice(-13)} of endpoint …${endpointId.slice(-6)} waits for ${seconds} s (attempts ${waiting.attempts}, due ${waiting.dueAt}, owner ${this.database.ownerOf(endpointId)})`,
        );
      } else if (row.status === 'delivered' && !this.delivered.has(id)) {
        problems.push(`delivery …${id.slice(-13)} is said to be delivered, but never was`);
      } else if (row.status === 'dead' && row.reason === null) {
        problems.push(`delivery …${id.slice(-13)} is dead without a reason`);
      }
    }
    for (const { process, engine } of this.running) {
      const { inMemory, inFlight, unsettled, heldBytes } = engine.stats;
      if (inMemory + inFlight + unsettled + heldBytes !== 0)
        problems.push(`${process.name} still holds ${JSON.stringify(engine.stats)}`);
    }
    if (problems.length > 0) throw new Violation(problems.slice(0, 8).join('\n'));
  }
}
