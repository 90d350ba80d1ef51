/** Rules that every request must obey at the moment it is sent, whatever fails meanwhile. */

import type { Endpoint } from '../../src/domain/endpoint.ts';
import { eventIdOfDelivery, type Uuid } from '../../src/domain/ids.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import type { QueueRow, ShardRow } from '../../src/memory/rows.ts';
import type { BatchStart } from '../../src/ports/batch-log.ts';
import type { AttemptRequest } from '../../src/ports/stages.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { Answer } from './world.ts';

export interface Sender {
  readonly from: SimulatedProcess;
  /** True if the circuit was open when the engine chose the delivery. */
  readonly isProbe: boolean;
}

/** A request on the wire. */
export interface Wire extends Sender {
  readonly deliveryId: Uuid;
  readonly number: number;
  /** All deliveries of the request and the numbers of their attempts. */
  readonly members: readonly Member[];
  readonly shard: ShardRow;
  readonly epoch: number;
  readonly start: number;
  readonly end: number;
  /** True if the delivery was replayed and the worker did not know yet: a failure then counts for nothing. */
  readonly missedReplay: boolean;
}

interface Member {
  readonly deliveryId: Uuid;
  readonly number: number;
}

/** Every reader must have seen deliveries that were committed longer ago than this. */
const MAX_COMMIT_AGE_MS = 12_000;

export class RequestChecks {
  readonly violations: string[] = [];
  duplicates = 0;
  batches = 0;
  /** Batches with more than one event. */
  fullBatches = 0;
  /** Batches of which a receiver named some events as failed, and batches of several events that it rejected. */
  readonly pickyAnswers = { partial: 0, rejected: 0, partialFifo: 0, rejectedFifo: 0 };
  /** The slowest connection to a receiver so far. */
  slowestConnectMs = 0;
  /** When deliveries were last replayed. */
  readonly replays = new Map<Uuid, number>();
  /** The deliveries of each batch, with their attempts when a worker last recorded it. The result of an earlier owner may arrive later. */
  readonly recordedBatches = new Map<Uuid, BatchStart['members']>();
  readonly #store: MemoryStore;
  readonly #startedAt: number;
  /** The slowest call to the store so far. */
  readonly #slowestMs: () => number;
  readonly #wires = new Map<Uuid, Wire[]>();
  /** By delivery and number of the attempt. */
  readonly #lastWires = new Map<string, Wire>();
  /** The events that were sent under the id of a batch. */
  readonly #compositions = new Map<Uuid, string>();
  /** By event: the payload that pinned endpoints got. */
  readonly #converted = new Map<Uuid, string>();
  readonly #rates = new Map<Uuid, { count: number; lowest: number }>();

  constructor(store: MemoryStore, startedAt: number, slowestMs: () => number) {
    this.#store = store;
    this.#startedAt = startedAt;
    this.#slowestMs = slowestMs;
  }

  /** Call this before the request is sent. */
  onSend(sender: Sender, request: AttemptRequest, durationMs: number): void {
    const { endpoint, deliveryId, number } = request;
    const start = this.#store.visibleNow();
    const shard = this.#store.shards[this.#store.shardOfLane(endpoint.id)]!;
    const missedReplay =
      this.#store.queue.get(deliveryId)?.trigger === 'replay' && request.retryReason !== 'replay';
    const end = start + durationMs;
    const members = this.#membersOf(request);
    const wire: Wire = {
      ...sender,
      deliveryId,
      number,
      members,
      shard,
      epoch: shard.epoch,
      start,
      end,
      missedReplay,
    };
    const onWire = (this.#wires.get(endpoint.id) ?? []).filter(({ end }) => end > start);
    this.#check(endpoint, wire, shard, onWire);
    if (request.batch !== undefined) this.#checkBatch(endpoint, wire, request.batch);
    this.#checkPayload(request, wire);
    this.#wires.set(endpoint.id, [...onWire, wire]);
    for (const member of members) this.#lastWires.set(`${member.deliveryId} ${member.number}`, wire);
  }

  /** Counts the answers that change a batch. */
  onAnswer({ batch, endpoint }: AttemptRequest, { status, failed = [] }: Answer): void {
    const events = batch?.events.length ?? 0;
    if (events < 2 || status === null) return;
    const isFifo = endpoint.ordering === 'fifo';
    if (status < 300 && failed.length > 0 && failed.length < events)
      this.pickyAnswers[isFifo ? 'partialFifo' : 'partial'] += 1;
    else if (status >= 400 && status < 500) this.pickyAnswers[isFifo ? 'rejectedFifo' : 'rejected'] += 1;
  }

  /** True if the last request of one of the delivery's attempts was on the wire at that time. */
  wasOnWire(deliveryId: Uuid, attempts: number, at: number): boolean {
    return Array.from({ length: attempts + 1 }, (_, n) => this.#lastWires.get(`${deliveryId} ${n + 1}`)).some(
      (wire) => wire !== undefined && wire.start <= at && at < wire.end,
    );
  }

  /** The deliveries that a request carries. The composition of a batch is stored before it is sent. */
  #membersOf({ batch, deliveryId, number }: AttemptRequest): Member[] {
    const leader = { deliveryId, number };
    if (batch === undefined) return [leader];
    return (this.recordedBatches.get(batch.id) ?? []).map(({ deliveryId: id, attempts }) =>
      id === deliveryId ? leader : { deliveryId: id, number: attempts + 1 },
    );
  }

  /** A batch is stored before it is sent, within its limits, and never changes under its id. */
  #checkBatch(endpoint: Endpoint, wire: Wire, { id, events }: NonNullable<AttemptRequest['batch']>): void {
    const sent = events.map((event) => event.id).join();
    const stored = this.#store.batches.get(id)?.deliveryIds.map(eventIdOfDelivery).join();
    if (stored !== sent) this.#violate('sent a batch that is not stored like this', wire, endpoint);
    if ((this.#compositions.get(id) ?? sent) !== sent)
      this.#violate('changed a batch under its id', wire, endpoint);
    this.#compositions.set(id, sent);
    this.batches += 1;
    if (events.length > 1) this.fullBatches += 1;
    const seqs = wire.members.flatMap(({ deliveryId }) => this.#store.queue.get(deliveryId)?.seq ?? []);
    const isSorted = seqs.every((seq, index) => index === 0 || seqs[index - 1]! < seq);
    if (endpoint.ordering === 'fifo' && !isSorted) this.#violate('out of order in a batch', wire, endpoint);
  }

  /** Deliveries whose requests are on the wire just now. */
  get onWire(): Uuid[] {
    const now = this.#store.visibleNow();
    return [...this.#wires.values()]
      .flat()
      .flatMap(({ members, end }) => (end > now ? members.map(({ deliveryId }) => deliveryId) : []));
  }

  #check(endpoint: Endpoint, wire: Wire, shard: ShardRow, onWire: readonly Wire[]): void {
    const violate = (what: string): void => this.#violate(what, wire, endpoint);
    const event = this.#store.events.get(eventIdOfDelivery(wire.deliveryId));
    if (event === undefined) violate('sent a delivery that was never accepted');
    else if (event.visibleAt > wire.start) violate('sent before the commit of its event');
    if (shard.owner !== wire.from.workerId) violate('sent without a valid lease');
    if (!endpoint.enabled || endpoint.paused) violate('sent to an endpoint that is disabled or paused');

    for (const { deliveryId, number } of wire.members) {
      const before = this.#lastWires.get(`${deliveryId} ${number}`);
      if (before !== undefined) {
        this.duplicates += 1;
        if (!this.#isDuplicateAllowed(before, wire, deliveryId)) violate('sent twice without a reason');
      }
      const isOnWire = ({ members, epoch }: Wire): boolean =>
        epoch === wire.epoch && members.some((member) => member.deliveryId === deliveryId);
      if (onWire.some(isOnWire)) violate('the same delivery is on the wire twice');
    }
    // The limit applies to each owner: requests of earlier owners may still be on the wire.
    const owners = new Set([wire, ...onWire].map(({ epoch }) => epoch)).size;
    if (onWire.length + 1 > endpoint.maxInFlight * owners) violate(`${onWire.length + 1} at once`);
    if (wire.isProbe && onWire.some(({ isProbe }) => isProbe)) violate('two probes at once');
    if (endpoint.ordering === 'fifo') this.#checkOrder(endpoint, wire, onWire);
    if (endpoint.rateLimit !== null) this.#checkRate(endpoint, wire);
  }

  /** VER-2: what was converted once is what is sent in every attempt, by every worker. */
  #checkPayload({ endpoint, event }: AttemptRequest, wire: Wire): void {
    const published = this.#store.events.get(event.id)?.data.toString();
    const sent = event.data.toString();
    if (endpoint.apiVersion === null) {
      if (sent !== published) this.#violate('sent a converted payload without a pin', wire, endpoint);
      return;
    }
    const before = this.#converted.get(event.id) ?? sent;
    this.#converted.set(event.id, before);
    if (sent === published || sent !== before) this.#violate('sent another payload', wire, endpoint);
  }

  /**
   * A delivery may be sent twice if one of these holds: its first sender died, was stopped or could not record its requests
   * on the wire; recording the result took too long; a replay was requested while it was on the wire, or before that
   * without the knowledge of its sender.
   */
  #isDuplicateAllowed(before: Wire, wire: Wire, deliveryId: Uuid): boolean {
    const isReplayed = before.missedReplay || (this.replays.get(deliveryId) ?? 0) >= before.start;
    const hasDied = Math.max(before.shard.diedAt, wire.shard.diedAt) >= before.start;
    const handOverFailedAt = before.from.problems.get('hand over requests on the wire') ?? 0;
    const hasStalled = Math.max(before.from.process.stalledAt, handOverFailedAt) >= before.start;
    const isSlow = this.#slowestMs() > 500 && wire.start > before.end + 1_500;
    const lockedAt = before.from.problems.get('record results that another transaction blocks') ?? 0;
    const isLocked = lockedAt >= before.start && wire.start > before.end + 1_500;
    return hasDied || hasStalled || isSlow || isLocked || isReplayed;
  }

  #checkOrder(endpoint: Endpoint, wire: Wire, onWire: readonly Wire[]): void {
    if (onWire.length > 0) this.#violate('two requests of a FIFO endpoint at once', wire, endpoint);
    // A delivery that was attempted stays at the head, even if one with an earlier number appears.
    if (wire.number > 1) return;
    const own = this.#store.queue.get(wire.deliveryId);
    if (own === undefined) return;
    const storedAt = ({ id }: QueueRow): number => this.#store.events.get(eventIdOfDelivery(id))!.visibleAt;
    // Events whose requests overlapped have no promised order if the later one was read before the earlier one was stored (ADR 5).
    const earlier = this.#store.queue
      .of(endpoint.id)
      .find(
        (row) =>
          row.seq < own.seq &&
          row.visibleAt < wire.start - MAX_COMMIT_AGE_MS &&
          storedAt(row) <= storedAt(own),
      );
    if (earlier !== undefined) this.#violate('out of order', wire, endpoint);
    const unwritten = this.#store.unwrittenSlices.find(
      ({ endpointIds, hasFifo, seq, visibleAt }) =>
        own !== undefined &&
        hasFifo &&
        endpointIds.includes(endpoint.id) &&
        seq < own.seq &&
        visibleAt < wire.start - MAX_COMMIT_AGE_MS,
    );
    if (unwritten !== undefined) this.#violate('passed a delivery that is not written yet', wire, endpoint);
  }

  #checkRate(endpoint: Endpoint, wire: Wire): void {
    const { perSecond, burst } = endpoint.rateLimit!;
    const rate = this.#rates.get(endpoint.id) ?? { count: 0, lowest: Number.POSITIVE_INFINITY };
    rate.count += 1;
    const level = rate.count - (perSecond * (wire.start - this.#startedAt)) / 1000;
    rate.lowest = Math.min(rate.lowest, level);
    // A token is taken before the payload is read, the start recorded and the connection opened, which all take time.
    const delayed = (perSecond * (4 * this.#slowestMs() + this.slowestConnectMs)) / 1000;
    if (level - rate.lowest + 1 > Math.max(1, burst) + delayed + 0.01)
      this.#violate('over its rate', wire, endpoint);
    this.#rates.set(endpoint.id, rate);
  }

  #violate(what: string, { start, from, deliveryId, number }: Wire, endpoint: Endpoint): void {
    const at = ((start - this.#startedAt) / 1000).toFixed(3);
    this.violations.push(
      `${at} s: ${what} (${from.process.name}, endpoint …${endpoint.id.slice(-6)}, delivery …${deliveryId.slice(-13)}, attempt ${number})`,
    );
  }
}
