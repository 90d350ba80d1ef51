/**
 * The durable state of deliveries that are not finished, and every change of that state. Only the worker that owns an
 * endpoint calls these methods for it. Every write is fenced, so that a worker that has lost its ownership cannot
 * overwrite a newer state.
 *
 *   waiting ──markStarted──▶ waiting (start recorded) ──settle──▶ delivered | retry: waiting | dead
 *      │ skip: its endpoint is disabled or deleted        expire: older than its maximum age
 *      ▼                                                  ▼
 *   skipped                                              dead
 *
 * The interface has several parts, so that other stores can implement some of them: a log that pushes fresh deliveries
 * could replace `LaneReader.loadLanes`, and a separate history could take the finished deliveries of `SettlementSink`.
 */
import type { AdaptiveRecord } from '../domain/adaptive-limits.ts';
import type { BreakerRecord } from '../domain/breaker.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointNote } from '../domain/operational.ts';
import type { AttemptOutcome, Trigger, Verdict } from '../domain/outcome.ts';
import type { BatchLog } from './batch-log.ts';
import type { Debouncer } from './debouncer.ts';

// --- reading ------------------------------------------------------------------------------------------------

/** Which waiting deliveries of one endpoint to load. */
export interface LaneRequest {
  readonly endpointId: Uuid;
  /** Fresh deliveries whose acceptance number is greater than this. Null: no fresh ones. */
  readonly freshAfter: number | null;
  /** Scheduled deliveries due at this time or later. Null: no scheduled ones. */
  readonly dueFrom: number | null;
  /** At most this many of each kind. */
  readonly limit: number;
}

export interface LoadedDelivery extends WaitingDelivery {
  /** When an earlier owner recorded the start of a request that was never settled. Null if none was. */
  readonly startedAt: number | null;
  /** How many recorded careful starts were never settled: each may be a crash with this delivery on the wire. */
  readonly carefulStarts: number;
}

export interface LoadedLane {
  /** In order of acceptance. For FIFO endpoints all waiting deliveries are here, retries included. */
  readonly fresh: readonly LoadedDelivery[];
  /** In order of due time. */
  readonly due: readonly LoadedDelivery[];
}

/** What is stored about an endpoint's lane besides its deliveries. */
export interface LaneState {
  readonly breaker: BreakerRecord;
  /** When the current series of failed attempts began. Null: the last attempt succeeded. */
  readonly failingSince: number | null;
  /** The receiver asked to wait until then (`Retry-After` of a 429). Null or absent: it did not. */
  readonly holdUntil?: number | null;
  /** The limits that an earlier owner set, because the endpoint was slow. Null or absent: none. */
  readonly adaptive?: AdaptiveRecord | null;
  /** True if a dead letter blocks this FIFO lane. */
  readonly blocked: boolean;
  /** True if no worker can have sent to this endpoint before, so that its rate limit starts with a full bucket. */
  readonly isNew: boolean;
  /** The shard that the lane is in. Null or absent: the store does not know the endpoint. */
  readonly shard?: number | null;
}

export interface WaitingCount {
  readonly endpointId: Uuid;
  readonly fresh: number;
  readonly retries: number;
  /** When the age of the oldest fresh delivery began. Infinity if nothing waits. */
  readonly oldestFresh: number;
  /** When the first retry is or was due. Infinity if nothing waits. */
  readonly firstDue: number;
}

export interface LaneReader {
  /** Loads waiting deliveries of many endpoints in one round trip. Every requested endpoint is in the answer. */
  loadLanes(requests: readonly LaneRequest[]): Promise<Map<Uuid, LoadedLane>>;

  /** Loads the lane states of these endpoints. An endpoint that is missing has never failed. */
  loadStates(endpointIds: readonly Uuid[]): Promise<Map<Uuid, LaneState>>;

  /** Loads the requested probes of all endpoints: waiting deliveries that were not attempted since `requestProbe`. */
  loadProbes(): Promise<LoadedDelivery[]>;

  /** Returns the endpoints with waiting deliveries of events whose ids were made at `since` or later. */
  listRecent(since: number): Promise<Uuid[]>;

  /** Counts waiting deliveries per endpoint, each kind up to `max`. */
  countWaiting(endpointIds: readonly Uuid[], max: number): Promise<WaitingCount[]>;
}

// --- before a request ---------------------------------------------------------------------------------------

/** A request whose start must be durable before it is sent: FIFO heads, probes, suspected poison. */
export interface Start {
  readonly deliveryId: Uuid;
  /** Fence: attempts made so far. */
  readonly attempts: number;
  /** True if a crash of this worker counts against the delivery. */
  readonly careful: boolean;
  readonly shard: number;
  /** The worker's time. The store records its own time, unless that is earlier: its clock may have stepped back. */
  readonly at?: number;
  /** Set for the probe of an open circuit: no other worker starts one before `breaker.nextProbeAt`. */
  readonly probe: { readonly endpointId: Uuid; readonly breaker: BreakerRecord } | null;
}

export interface StartRecorder {
  /**
   * Records the starts in one commit. Returns the deliveries that may be sent: still unchanged, shard still owned. With
   * `givesUpSoon`, throws `conflict` soon instead of waiting for a lock that another transaction holds.
   */
  markStarted(
    starts: readonly Start[],
    workerId: Uuid,
    options?: { readonly givesUpSoon: boolean },
  ): Promise<Set<Uuid>>;

  /**
   * Records requests that are on the wire while their shard is handed over: the next owner waits for their deadline.
   * Such a start does not count as a crash.
   */
  recordOnWire(deliveries: readonly { readonly id: Uuid; readonly startedAt: number }[]): Promise<void>;
}

// --- after a request ----------------------------------------------------------------------------------------

/** The result of one attempt, or (`attempt` null) the end of a delivery that was not attempted. */
export interface Settlement {
  readonly deliveryId: Uuid;
  readonly endpointId: Uuid;
  readonly tenant: string;
  /** Fence: attempts made before this one. If the stored number differs, another worker has settled the delivery. */
  readonly attemptsBefore: number;
  readonly verdict: Verdict;
  /** True if this dead letter blocks its FIFO lane. */
  readonly blocksLane: boolean;
  /** True if the endpoint is FIFO now. It may not have been when the delivery was stored. */
  readonly fifo: boolean;
  /** When its age began: accepted or last replayed. If `attempt` is null, this is a fence too: a replay changes it. */
  readonly agesFrom: number;
  readonly attempt: SettledAttempt | null;
  /** Of a retry: the batch that it belongs to from now on. Null or absent: the next batch may take it. */
  readonly batchId?: Uuid | null;
}

export interface SettledAttempt {
  readonly id: Uuid;
  readonly outcome: AttemptOutcome;
  readonly trigger: Trigger;
  readonly eventType: string;
  /** Number of requests since the delivery was accepted or last replayed, this one included. */
  readonly tries: number;
}

/** The new health of an endpoint after an attempt. */
export interface HealthChange {
  readonly endpointId: Uuid;
  /** Null: only `holdUntil` changes. The stored circuit stays, in which a probe may have been started meanwhile. */
  readonly breaker: BreakerRecord | null;
  readonly failingSince: number | null;
  /** The receiver asked to wait until then. Null or absent: the stored time stays. An earlier time does not replace it. */
  readonly holdUntil?: number | null;
  /** With `holdUntil`: a stored time that is later than this was written while a clock was wrong. It is replaced. */
  readonly latestHold?: number;
  /** The limits of the endpoint while it is slow. Null or absent: its configured ones. */
  readonly adaptive?: AdaptiveRecord | null;
  /** Set if the circuit opened or closed: becomes an operational event. */
  readonly circuitNote?: EndpointNote;
  /** Set if the limits were lowered or restored: becomes an operational event. */
  readonly limitNote?: EndpointNote;
}

export interface SettleBatch {
  /** At most one per delivery. */
  readonly settlements: readonly Settlement[];
  /** At most one per endpoint: the latest. */
  readonly health: readonly HealthChange[];
  readonly endpointNotes: readonly EndpointNote[];
  readonly worker: { readonly id: Uuid; readonly name: string };
  /** True: fail with `conflict` or `timeout` soon instead of waiting for a lock that another transaction holds. */
  readonly givesUpSoon?: boolean;
}

export interface SettlementSink {
  /**
   * Records attempts, moves deliveries on and updates endpoint health in one commit. Repeating a batch is harmless.
   * Returns the deliveries that moved; the others were settled by another worker, or replayed, and their attempts
   * are recorded as superseded. Health is written only for lanes in shards that the worker still owns. Throws `StoreError`.
   */
  settle(batch: SettleBatch): Promise<Set<Uuid>>;
}

// --- without a request --------------------------------------------------------------------------------------

export interface QueueCleaner {
  /**
   * Ends a chunk of waiting deliveries of an endpoint that is disabled or deleted in the store. Leaves out `except`
   * (on the wire). Returns how many ended; 0 means none is left, or the endpoint is enabled again.
   */
  skip(
    endpointId: Uuid,
    reason: 'endpoint_disabled' | 'endpoint_deleted',
    except: readonly Uuid[],
  ): Promise<number>;

  /** Makes a chunk of deliveries whose age began before `agedBefore` dead with reason `expired`. Returns how many. */
  expire(
    endpointId: Uuid,
    agedBefore: number,
    except: readonly Uuid[],
    options: { readonly blocksLane: boolean },
  ): Promise<number>;

  /** Marks a chunk of deliveries that were stored before their endpoint became FIFO. Returns how many. */
  moveToFifo(endpointId: Uuid): Promise<number>;
}

export interface Replayer {
  /**
   * Makes deliveries due now, wherever they are: waiting, dead or finished. Their schedule starts again. Returns those
   * that moved; the others belong to a disabled or deleted endpoint, do not exist, or moved at the same moment.
   */
  replay(
    deliveries: readonly { readonly id: Uuid; readonly endpointId: Uuid }[],
    now?: number,
  ): Promise<Set<Uuid>>;
}

export interface ProbeRequester {
  /**
   * Requests that the owner sends the oldest waiting delivery of an endpoint next, even while its circuit is open (FIFO:
   * the head). Leaves out deliveries that are scheduled for later and were never attempted. Returns null if nothing
   * waits, or if an earlier probe of this endpoint was not attempted yet.
   */
  requestProbe(endpointId: Uuid): Promise<Uuid | null>;
}

export interface DeliveryQueue
  extends LaneReader,
    StartRecorder,
    BatchLog,
    Debouncer,
    SettlementSink,
    QueueCleaner,
    Replayer,
    ProbeRequester {}
