/**
 * A replicated log that accepts events before they are stored (`POSTHORN_BACKBONE=kafka`). A 202 is sent after `append` has
 * resolved, so an implementation must not resolve before the events survive the loss of a machine. Posthorn moves them to the
 * store later. An event that is appended twice is stored once, because its id stays the same.
 */
import type { NewEvent, UnmatchedReason } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';

export interface LoggedEvent extends NewEvent {
  readonly id: Uuid;
  /** `readAt` of the closed tenants that the accepting process knew. Null: it has never read them. */
  readonly closedTenantsReadAt: number | null;
}

/** The log does not take a batch of this size, and never will. Nothing of it was appended. */
export class BatchTooLargeError extends Error {
  override readonly name = 'BatchTooLargeError';
}

export interface EventLog {
  /** How many partitions there are. Null: the log was not reachable yet. */
  readonly partitions: number | null;
  /**
   * Appends the events in this order. Throws if they may not be durable; they may be in the log nevertheless. Throws
   * `BatchTooLargeError` if only a smaller batch can be appended.
   */
  append(partition: number, events: readonly LoggedEvent[]): Promise<void>;
}

export interface KeyClaim {
  readonly tenant: string;
  readonly key: string;
  readonly eventId: Uuid;
  readonly fingerprint: Buffer;
}

export interface ClaimOptions {
  readonly idempotencyTtlMs: number;
  /** The process's time. Keys are kept from then on, or from the store's time if that is later. */
  readonly now: number;
  /** False: expired keys still count, because the clock may be wrong. */
  readonly mayExpireKeys: boolean;
}

/** The event that holds an idempotency key. */
export interface ClaimHolder {
  readonly eventId: Uuid;
  readonly fingerprint: Buffer;
  /** True: the event is not stored yet, and perhaps not in the log either. A repeated request must append it again. */
  readonly isClaimed: boolean;
  readonly deliveries: number;
  readonly unmatchedReason: UnmatchedReason | null;
  readonly type: string;
}

/** Tenants whose data is being deleted. The log would take their events, and the store would refuse them after the 202. */
export interface ClosedTenants {
  /** Reads all of them. Throws `StoreError`. */
  load(): Promise<ClosedTenantList>;
}

export interface ClosedTenantList {
  readonly tenants: ReadonlySet<string>;
  /** By the store's clock, in milliseconds since the epoch. A deletion that ended before is known to the reader of the list. */
  readonly readAt: number;
}

/** Idempotency keys of events that go through the log. They are claimed before the event is appended. */
export interface KeyClaims {
  /**
   * Claims the keys that are free or expired. Returns the holder of each key, by `idempotencyKeyName`: the event of the claim, or
   * an earlier one. Each key appears once. Throws `StoreError`.
   */
  claim(claims: readonly KeyClaim[], options: ClaimOptions): Promise<ReadonlyMap<string, ClaimHolder>>;
}
