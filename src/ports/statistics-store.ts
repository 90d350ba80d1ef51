/**
 * The statistics journal and the totals that upkeep computes from it. The event store and the delivery queue add rows to
 * the journal.
 */
import type { Uuid } from '../domain/ids.ts';
import type { EndpointBucket, EventBucket } from '../domain/statistics.ts';

export interface JournalRow {
  /** When it was committed, in milliseconds since the epoch. */
  readonly at: number;
  /** A `JournalEntry` as JSON. */
  readonly counts: string;
}

export interface UnreadableJournalRow extends JournalRow {
  readonly problem: string;
}

/** The event types of a tenant in the hour that begins at `at`. An empty tenant: all tenants together. */
export interface TenantHour {
  readonly tenant: string;
  readonly at: number;
}

/** Deliveries that were skipped, around the time `at`, because their endpoint is disabled. */
export interface SkippedCount {
  readonly endpointId: Uuid;
  readonly at: number;
  readonly count: number;
}

/** One round of adding journal rows to the totals. All its calls belong to one commit. */
export interface JournalRound {
  /** Removes up to `maxRows` rows from the journal and returns them, in any order. */
  takeRows(maxRows: number): Promise<readonly JournalRow[]>;
  /** Keeps rows that cannot be added up, with the reason. */
  setAside(rows: readonly UnreadableJournalRow[]): Promise<void>;
  /** The event types that have totals of their own in these hours. */
  findCountedTypes(
    hours: readonly TenantHour[],
  ): Promise<readonly (TenantHour & { readonly type: string })[]>;
  /** Adds to the totals. No two buckets have the same key. Returns how many buckets there were. */
  addEndpointTotals(buckets: Iterable<EndpointBucket>): Promise<number>;
  addEventTotals(buckets: Iterable<EventBucket>): Promise<number>;
  /** Adds to the numbers of skipped deliveries. */
  addSkipped(counts: readonly SkippedCount[]): Promise<void>;
}

export interface StatisticsStore {
  /**
   * Runs a round and commits it. If `work` throws, nothing has changed. Returns null without calling `work` if the journal
   * is empty or another process is running a round.
   */
  runRound<T>(work: (round: JournalRound) => Promise<T>): Promise<T | null>;
}
