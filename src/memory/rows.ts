/** What the memory store keeps, one interface per table. Times are milliseconds since the epoch. */
import type { AdaptiveRecord } from '../domain/adaptive-limits.ts';
import type { BreakerRecord } from '../domain/breaker.ts';
import type { ConversionNote } from '../domain/conversion-header.ts';
import type { DeliveryStatus } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { DeadReason, Trigger, Verdict } from '../domain/outcome.ts';
import type { CatalogueType } from '../ports/catalogue-store.ts';
import type { EventRecord, UnwrittenSlice } from '../ports/event-store.ts';
import type { OutboxRow } from '../ports/outbox-store.ts';

/** Rows are visible to readers from `visibleAt` on: the moment of their commit. */
interface Committed {
  readonly visibleAt: number;
}

export interface StoredEvent extends Omit<EventRecord, 'deliveries' | 'skipped' | 'unwritten'>, Committed {
  readonly deliveries: number;
}

type Schema = Readonly<Record<string, unknown>> | boolean;

export interface StoredEventType extends CatalogueType {
  /** Null: the type itself has none. */
  readonly schema: Schema | null;
  /** By version. Versions without a schema are missing. */
  readonly schemas: ReadonlyMap<string, Schema>;
}

export interface StoredKey {
  eventId: Uuid;
  fingerprint: Buffer;
  expiresAt: number;
  /** True: the event is not stored yet. It may wait in the accept log. */
  isClaimed: boolean;
}

/** What every state of a delivery has in common. */
export interface DeliveryFacts {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly tenant: string;
  readonly eventType: string;
  attempts: number;
  replays: number;
  lastStatusCode: number | null;
  lastErrorClass: string | null;
}

export interface QueueRow extends DeliveryFacts, Committed {
  readonly seq: number;
  fifo: boolean;
  dueAt: number | null;
  /** Null: its age began when it was accepted, which is the time in its id. */
  agesFrom: number | null;
  startedAt: number | null;
  attemptsBeforeReplay: number;
  carefulStarts: number;
  trigger: Trigger;
  /** A requested probe as long as it equals `attempts`. */
  probeAfterAttempts?: number;
  batchId?: Uuid | null;
}

/** The composition of a batch. Never changes. */
export interface StoredComposition {
  readonly endpointId: Uuid;
  readonly deliveryIds: readonly Uuid[];
}

export interface StoredDebounceKey {
  readonly endpointId: Uuid;
  readonly key: string;
  /** When the first of the events that this one replaces was accepted. */
  since: number;
  debounced: number;
  /** True once `max_wait_ms` is over: it is sent, even if newer ones arrive. */
  isChosen: boolean;
}

/** Deliveries of a large fan-out that are accepted but not written. */
export interface StoredSlice extends UnwrittenSlice, Committed {
  readonly eventId: Uuid;
  readonly firstOrdinal: number;
  readonly tenant: string;
  readonly eventType: string;
  readonly seq: number;
  readonly deliverAt: number | null;
  /** The moment of the commit that writes its deliveries. Infinity: none has begun. */
  writtenAt: number;
}

/** A delivery that ended and is not a dead letter. */
export interface FinishedDelivery extends DeliveryFacts {
  readonly status: Extract<DeliveryStatus, 'delivered' | 'skipped' | 'discarded'>;
  readonly reason: string | null;
  readonly finishedAt: number;
}

export interface DeadLetter extends DeliveryFacts {
  reason: DeadReason;
  blocksLane: boolean;
  /** True while a replay of it waits in the queue. */
  replaying: boolean;
  deadAt: number;
}

export interface StoredAttempt {
  readonly deliveryId: Uuid;
  readonly id: Uuid;
  readonly number: number;
  readonly outcome: Verdict['kind'] | 'superseded';
  readonly startedAt: number;
  readonly statusCode: number | null;
  readonly errorClass: string | null;
  readonly errorMessage: string | null;
  /** JSON text. */
  readonly responseHeaders: string | null;
  readonly responseBody: Buffer | null;
  readonly trigger: Trigger;
  readonly worker: string;
  /** What its request headers say about the version of the payload. */
  readonly conversion: ConversionNote | null;
}

export interface StoredHealth {
  breaker: BreakerRecord;
  failingSince: number | null;
  holdUntil: number | null;
  adaptive: AdaptiveRecord | null;
}

export interface StoredEndpoint {
  endpoint: Endpoint;
  /** Version of the endpoints that its last change made. */
  version: number;
  readonly createdAt: number;
  /** When it was last enabled again. Null: it was never disabled. */
  enabledSince: number | null;
}

/** A session holds its worker's lock while it is open. */
export interface StoreSession {
  isOpen: boolean;
  readonly onLost: (error: unknown) => void;
}

export interface WorkerRow {
  readonly id: Uuid;
  readonly name: string;
  /** The number of its region. */
  readonly region: number;
  session: StoreSession;
  renewedAt: number;
  renewals: number;
  stopping: boolean;
}

export interface ShardRow {
  owner: Uuid | null;
  epoch: number;
  /** Null: no worker has ever owned it. */
  takenAt: number | null;
  /** When its owners died, latest first, at most eight. */
  uncleanAt: number[];
  /** When its last owner died, as `MemoryStore.visibleNow`. */
  diedAt: number;
}

export interface StoredOutboxRow extends OutboxRow, Committed {
  readonly createdAt: number;
}

export interface RejectedOutboxRow extends OutboxRow {
  readonly reason: string;
}

/** Which deliveries a task works on. Null: any. */
export interface TaskSelection {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  readonly statuses: readonly DeliveryStatus[];
  readonly type: string | null;
  readonly reason: string | null;
  /** Accepted at this time or later. */
  readonly since: number | null;
  /** Accepted before this time. */
  readonly until: number | null;
  readonly ids: readonly Uuid[] | null;
  readonly eventId?: Uuid | null;
}

export interface TaskRow {
  readonly id: Uuid;
  readonly kind: 'replay' | 'discard';
  readonly selection: TaskSelection;
  readonly createdBy: string;
  readonly createdAt: number;
  state: 'queued' | 'running' | 'done' | 'cancelled' | 'failed';
  total: number;
  done: number;
  failed: number;
  /** The last delivery that the task has processed. */
  cursor: Uuid | null;
  runner: Uuid | null;
  /** Whether a runner has worked on it. */
  wasClaimed: boolean;
  heartbeatAt: number | null;
  updatedAt: number;
  error: string | null;
}
