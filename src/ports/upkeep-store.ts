/** The changes that regular upkeep makes in the store. */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Resolution } from '../domain/statistics.ts';

export interface DeadRateLimits {
  readonly deadRate: number;
  readonly minDeliveries: number;
  readonly minMs: number;
}

export interface EndpointDisabler {
  /**
   * Enabled endpoints with at least `minDeliveries` in the last day, more than `deadRate` of them dead. The dead ones span
   * at least `minMs`, and the same share died within the last `minMs`.
   */
  findByDeadRate(limits: DeadRateLimits): Promise<readonly Uuid[]>;

  /** Enabled endpoints whose attempts have failed for `failingMs` without a success. */
  findFailing(failingMs: number): Promise<readonly Uuid[]>;

  /**
   * Disables an endpoint, and records the rule that caused it in the audit log. Returns false if the endpoint is disabled
   * or deleted already.
   */
  disable(id: Uuid, reason: DisabledReason, rule: string): Promise<boolean>;
}

/** Each method deletes up to `max` rows and returns how many it deleted. Fewer than `max`: none is left. */
export interface ExpiredDataCleaner {
  deleteIdempotencyKeys(max: number): Promise<number>;
  deleteIdempotentRequests(max: number): Promise<number>;
  deleteStatistics(resolution: Resolution, keepHours: number, max: number): Promise<number>;
  /** Deletes audit entries with an id below `firstKept`. */
  deleteAuditEntries(firstKept: Uuid, max: number): Promise<number>;
  /** Deletes batches with an id below `firstKept`. */
  deleteBatches(firstKept: Uuid, max: number): Promise<number>;
  /** Deletes the debounce records of deliveries that retention has dropped. */
  deleteDebounced(max: number): Promise<number>;
  /** Deletes deliveries that were skipped before `cutoffMs` because their endpoint was disabled. */
  deleteOldSkipped(cutoffMs: number, max: number): Promise<number>;
  /** Deletes such deliveries of endpoints that have more than `keep` of them. The newest stay. */
  deleteSurplusSkipped(keep: number, max: number): Promise<number>;
  /** Deletes records of invalid payloads with an id below `firstKept`. */
  deleteOldSchemaFailures(firstKept: Uuid, max: number): Promise<number>;
  /** Deletes such records of tenants that have more than `keep` of them. The newest stay. */
  deleteSurplusSchemaFailures(
    keep: { readonly perTenant: number; readonly perTenantAndType: number },
    max: number,
  ): Promise<number>;
  /** Deletes converted payloads whose event has an id below `firstKept` and no payload any more. */
  deleteConversions(firstKept: Uuid, isStopped: () => boolean): Promise<void>;
  /** Deletes expired inboxes, and requests in inboxes that arrived before `requestsBefore`. */
  deleteInboxes(now: number, requestsBefore: number): Promise<void>;
  /** Deletes expired secrets, tasks that ended `keepTaskDays` ago, and other kinds of rows of which there are few. */
  deleteLeftovers(keepTaskDays: number): Promise<void>;
}

export interface UpkeepStore extends EndpointDisabler, ExpiredDataCleaner {
  /** Calls `work` unless another process runs upkeep. Returns whether it called it. A crash ends the exclusion. */
  runExclusively(work: () => Promise<void>): Promise<boolean>;

  /** Expunges again what a restore of the store brought back. */
  applyTombstones(nowMs: number): Promise<void>;

  /** Creates the storage that will be needed soon. */
  ensurePartitions(): Promise<void>;

  /** Seals the headers of up to `max` endpoints that earlier versions stored in plain text. Returns how many it read. */
  sealPlainHeaders(max: number): Promise<number>;

  /**
   * Redacts values of custom headers in up to `max` attempts that earlier versions recorded, oldest first. Returns false if
   * none is left.
   */
  redactOldAttempts(max: number): Promise<boolean>;
}
