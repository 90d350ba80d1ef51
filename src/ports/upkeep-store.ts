/** The changes that regular upkeep makes in the store. */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Resolution } from '../domain/statistics.ts';

export interface EndpointDisabler {
  /** Enabled endpoints with at least `minDeliveries` in the last day, more than `deadRate` of them dead. */
  findDying(limits: { readonly deadRate: number; readonly minDeliveries: number }): Promise<readonly Uuid[]>;

  /** Enabled endpoints whose attempts have failed for `failingMs` without a success. */
  findFailing(failingMs: number): Promise<readonly Uuid[]>;

  /**
   * Disables an endpoint. Returns false if it is disabled or deleted already, or if it has changed since the
   * `observation` that led to this: it has another URL, or was enabled again after `at`.
   */
  disable(
    id: Uuid,
    reason: DisabledReason,
    observation?: { readonly url: string; readonly at: number },
  ): Promise<boolean>;
}

/** Each method deletes up to `max` rows and returns how many it deleted. Fewer than `max`: none is left. */
export interface ExpiredDataCleaner {
  deleteIdempotencyKeys(max: number): Promise<number>;
  deleteIdempotentRequests(max: number): Promise<number>;
  deleteStatistics(resolution: Resolution, keepHours: number, max: number): Promise<number>;
  /** Deletes audit entries with an id below `firstKept`. */
  deleteAuditEntries(firstKept: Uuid, max: number): Promise<number>;
  /** Deletes expired inboxes, and requests in inboxes that arrived before `requestsBefore`. */
  deleteInboxes(now: number, requestsBefore: number): Promise<void>;
  /** Deletes expired secrets, tasks that ended `keepTaskDays` ago, and other kinds of rows of which there are few. */
  deleteLeftovers(keepTaskDays: number): Promise<void>;
}

export interface UpkeepStore extends EndpointDisabler, ExpiredDataCleaner {
  /** Calls `work` unless another process runs upkeep. Returns whether it called it. A crash ends the exclusion. */
  runExclusively(work: () => Promise<void>): Promise<boolean>;

  /** Creates the storage that will be needed soon. */
  ensurePartitions(): Promise<void>;

  /** Seals the headers of up to `max` endpoints that earlier versions stored in plain text. Returns how many it read. */
  sealPlainHeaders(max: number): Promise<number>;
}
