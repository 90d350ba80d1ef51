/**
 * A store in plain maps, for tests and the simulation. It keeps the promises of the ports with one exception: its data
 * does not survive the process. Every change of state happens in one synchronous step, as a statement of PostgreSQL does.
 *
 * A commit may become visible some time after its acceptance numbers were assigned (`commitDelayMs`). A reader can then
 * see number 8 before number 7, as happens in PostgreSQL when two commits overlap.
 */
import type { Clock } from '../domain/clock.ts';
import { type Endpoint, type RateLimit, SHARDS, shardOf, shardOfLane } from '../domain/endpoint.ts';
import type { ValidationMode } from '../domain/event-type-version.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import type { EndpointNote } from '../domain/operational.ts';
import { DEFAULT_REGION, DEFAULT_REGION_NAME } from '../domain/region.ts';
import type { SchemaFailure } from '../ports/catalogue-store.ts';
import type { StoredConversion } from '../ports/conversion-store.ts';
import type { NewDelivery } from '../ports/event-store.ts';
import type { OutboxRow } from '../ports/outbox-store.ts';
import { KafkaTables } from './kafka-tables.ts';
import { QueueTable } from './queue-table.ts';
import type {
  DeadLetter,
  FinishedDelivery,
  RejectedOutboxRow,
  ShardRow,
  StoredAttempt,
  StoredComposition,
  StoredDebounceKey,
  StoredEndpoint,
  StoredEvent,
  StoredEventType,
  StoredHealth,
  StoredKey,
  StoredOutboxRow,
  StoredSlice,
  TaskRow,
  WorkerRow,
} from './rows.ts';

export interface MemoryStoreOptions {
  /** The store's clock. Its timers must not depend on the life of any simulated process. */
  readonly clock: Pick<Clock, 'now' | 'after'> & Partial<Pick<Clock, 'monotonic'>>;
  /** How long a commit takes to become visible after its numbers were assigned. Default: no time. */
  readonly commitDelayMs?: () => number;
  /** At most this many deliveries end in one call of `skip` or `expire`. */
  readonly chunkSize?: number;
}

const DAY_MS = 86_400_000;
const PARTITION_DAYS = 7;

export class MemoryStore {
  readonly clock: MemoryStoreOptions['clock'];
  readonly chunkSize: number;
  commitDelayMs: () => number;

  readonly events = new Map<Uuid, StoredEvent>();
  readonly queue = new QueueTable(() => this.visibleNow());
  readonly fanOutSlices = new Set<StoredSlice>();
  readonly finished = new Map<Uuid, FinishedDelivery>();
  readonly deadLetters = new Map<Uuid, DeadLetter>();
  /** By delivery, then by attempt. */
  readonly attempts = new Map<Uuid, Map<Uuid, StoredAttempt>>();
  readonly batches = new Map<Uuid, StoredComposition>();
  /** Batches whose request may be on the wire, and when it was started. */
  readonly openBatches = new Map<Uuid, number>();
  /** By delivery. */
  readonly debounceKeys = new Map<Uuid, StoredDebounceKey>();
  /** Mode `first`: by endpoint and key. */
  readonly debounceWindows = new Map<string, { firstId: Uuid; readonly until: number }>();
  /** Which delivery was sent instead of a skipped one. */
  readonly debounced = new Map<Uuid, Uuid>();
  /** When a delivery was skipped like this, as `visibleNow`. */
  readonly debouncedAt = new Map<Uuid, number>();
  readonly health = new Map<Uuid, StoredHealth>();
  readonly endpointNotes = new Map<Uuid, EndpointNote>();
  /** By `conversionName`. */
  readonly conversions = new Map<string, StoredConversion>();
  /** Events whose payload was expunged. */
  readonly expungedEvents = new Set<Uuid>();
  /** By `idempotencyKeyName`. */
  readonly idempotencyKeys = new Map<string, StoredKey>();
  readonly tenants = new Set<string>();
  /** Publish limits of tenants that have one of their own. */
  readonly tenantLimits = new Map<string, RateLimit>();
  /** Modes of tenants that check payloads. */
  readonly tenantModes = new Map<string, ValidationMode>();
  /** By name. */
  readonly eventTypes = new Map<string, StoredEventType>();
  /** By id. */
  readonly schemaFailures = new Map<Uuid, SchemaFailure>();
  readonly endpoints = new Map<Uuid, StoredEndpoint>();
  readonly workers = new Map<Uuid, WorkerRow>();
  /** The names of the regions, by number. The default region has number 0. */
  readonly regions: string[] = [DEFAULT_REGION_NAME];
  readonly shards: ShardRow[] = newShards();
  /** By number. */
  readonly outbox = new Map<number, StoredOutboxRow>();
  readonly rejectedOutbox: RejectedOutboxRow[] = [];
  readonly tasks = new Map<Uuid, TaskRow>();
  readonly kafka = new KafkaTables();
  /** Ids made within this range of times can be stored. */
  readonly partitions: { fromMs: number; untilMs: number };

  #endpointVersion = 1;
  #seq = 0;
  #epoch = 0;
  #outboxSeq = 0;

  constructor({ clock, commitDelayMs = () => 0, chunkSize = 2000 }: MemoryStoreOptions) {
    this.clock = clock;
    this.commitDelayMs = commitDelayMs;
    this.chunkSize = chunkSize;
    const today = Math.floor(clock.now() / DAY_MS) * DAY_MS;
    this.partitions = { fromMs: today - DAY_MS, untilMs: today + 2 * PARTITION_DAYS * DAY_MS };
  }

  now(): number {
    return this.clock.now();
  }

  /** The time that decides which commits are visible. Unlike `now` it never steps. */
  visibleNow(): number {
    return this.clock.monotonic?.() ?? this.clock.now();
  }

  /** 1 even before the first number was assigned, like the `last_value` of a PostgreSQL sequence. */
  get lastSeq(): number {
    return Math.max(1, this.#seq);
  }

  get outboxSeq(): number {
    return Math.max(1, this.#outboxSeq);
  }

  get endpointVersion(): number {
    return this.#endpointVersion;
  }

  /** Whether an endpoint of these tenants has changed since the version, or the store has never had that version. */
  hasChangedSince(version: number, tenants: ReadonlySet<string>): boolean {
    if (version === this.#endpointVersion) return false;
    if (version > this.#endpointVersion) return true;
    for (const { endpoint, version: changedAt } of this.endpoints.values())
      if (changedAt > version && tenants.has(endpoint.tenant)) return true;
    return false;
  }

  /** Slices of large fan-outs from the commit that accepted them until the commit that writes them. */
  get unwrittenSlices(): StoredSlice[] {
    const now = this.visibleNow();
    return [...this.fanOutSlices].filter(({ visibleAt, writtenAt }) => visibleAt <= now && writtenAt > now);
  }

  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  nextEpoch(): number {
    this.#epoch += 1;
    return this.#epoch;
  }

  /** Stores the keys of deliveries that are about to be written. */
  storeDebounceKeys(deliveries: readonly NewDelivery[]): void {
    for (const { id, endpointId, debounceKey } of deliveries)
      if (debounceKey != null)
        this.debounceKeys.set(id, {
          endpointId,
          key: debounceKey,
          since: timeOfId(id),
          debounced: 0,
          isChosen: false,
        });
  }

  /** The number of a region, which is created if it does not exist. Null: the default region. */
  regionNumber(name: string | null): number {
    if (name === null) return DEFAULT_REGION;
    if (!this.regions.includes(name)) {
      this.regions.push(name);
      this.shards.push(...newShards());
    }
    return this.regions.indexOf(name);
  }

  /** The shard that the lane of an endpoint is in. */
  shardOfLane(endpointId: Uuid): number {
    const stored = this.endpoints.get(endpointId);
    return stored === undefined ? shardOf(endpointId) : shardOfLane(stored.endpoint);
  }

  /** Changes the region of an endpoint. Its lane stays where it is until its owner moves it. */
  changeRegion(id: Uuid, region: string | null): void {
    const { endpoint } = this.endpoints.get(id)!;
    const wantedShard = region === null ? null : this.regionNumber(region) * SHARDS + shardOf(id);
    this.putEndpoint({ ...endpoint, region, wantedShard, placement: endpoint.placement + 1 });
  }

  moveLane(id: Uuid): void {
    const { endpoint } = this.endpoints.get(id)!;
    this.putEndpoint({ ...endpoint, shard: endpoint.wantedShard, placement: endpoint.placement + 1 });
  }

  ownerOf(endpointId: Uuid): Uuid | null {
    return this.shards[this.shardOfLane(endpointId)]!.owner;
  }

  /** Creates or replaces an endpoint and raises the version of the endpoints. */
  putEndpoint(endpoint: Endpoint): void {
    this.#endpointVersion += 1;
    const stored = this.endpoints.get(endpoint.id);
    const isEnabledAgain = stored !== undefined && !stored.endpoint.enabled && endpoint.enabled;
    this.endpoints.set(endpoint.id, {
      endpoint,
      version: this.#endpointVersion,
      createdAt: stored?.createdAt ?? this.now(),
      enabledSince: isEnabledAgain ? this.now() : (stored?.enabledSince ?? null),
    });
  }

  /** Adds a row to the outbox, as `posthorn.publish` does. The row is visible from `visibleAt` on. */
  publish(row: Omit<OutboxRow, 'seq'>, visibleAt = this.visibleNow()): void {
    this.#outboxSeq += 1;
    this.outbox.set(this.#outboxSeq, {
      ...row,
      seq: String(this.#outboxSeq),
      createdAt: this.now(),
      visibleAt,
    });
  }

  addAttempt(attempt: StoredAttempt): void {
    let attempts = this.attempts.get(attempt.deliveryId);
    if (attempts === undefined) {
      attempts = new Map();
      this.attempts.set(attempt.deliveryId, attempts);
    }
    if (!attempts.has(attempt.id)) attempts.set(attempt.id, attempt);
  }

  /** Ends a worker's session like a broken connection, and calls `onLost` in its process. */
  breakSession(workerId: Uuid): void {
    const session = this.workers.get(workerId)?.session;
    if (session === undefined || !session.isOpen) return;
    session.isOpen = false;
    session.onLost(new Error('The session was broken.'));
  }

  /** Ends a worker's session because its process is dead. */
  endSession(workerId: Uuid): void {
    const session = this.workers.get(workerId)?.session;
    if (session !== undefined) session.isOpen = false;
  }
}

/** The shards of one region. */
function newShards(): ShardRow[] {
  return Array.from({ length: SHARDS }, () => ({
    owner: null,
    epoch: 0,
    takenAt: null,
    uncleanAt: [],
    diedAt: Number.NEGATIVE_INFINITY,
  }));
}

/** Rounds to microseconds, the precision of PostgreSQL's timestamps. */
export const toMicroseconds = (ms: number): number => Math.round(ms * 1000) / 1000;
