/**
 * Deletes data whose retention has ended, by dropping whole partitions. Rows that are still needed are copied first,
 * to a replacement of the same range. Each step is one commit, and every step can be repeated after a crash.
 *
 *   findExpired ──▶ prepare ──▶ copy … copy ──▶ swap ──▶ dropDetached
 */
import type { Uuid } from '../domain/ids.ts';
import type { PartitionedTable } from '../domain/retention.ts';

export interface Partition {
  readonly name: string;
  readonly table: PartitionedTable;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A replacement that is being filled. It takes over the range of one partition, or of two neighbours. */
export interface PartitionReplacement {
  readonly name: string;
  readonly table: PartitionedTable;
  readonly isCopied: boolean;
}

export interface PartitionDropper {
  /** The oldest partition of the table that ended before `cutoffMs`. Null: there is none, or a task still needs it. */
  findExpired(table: PartitionedTable, cutoffMs: number): Promise<Partition | null>;
  /** The replacement that an earlier round could not finish. */
  findReplacement(table: PartitionedTable): Promise<PartitionReplacement | null>;
  /**
   * Creates the replacement. Deliveries that ended at `finishedSinceMs` or later stay, with their events and attempts.
   * Returns null if it could not get the lock within 50 ms, for instance beside an autovacuum of the partition.
   */
  prepare(partition: Partition, finishedSinceMs: number): Promise<PartitionReplacement | null>;
  /** Copies a chunk of what is still needed. Returns where to continue. Null: everything is copied. */
  copy(replacement: PartitionReplacement, after: Uuid | null, maxRows: number): Promise<Uuid | null>;
  /** Puts the replacement in place. Returns false if it could not get the lock within 50 ms. */
  swap(replacement: PartitionReplacement): Promise<boolean>;
  /** Drops the partitions that were replaced. Returns their names. */
  dropDetached(): Promise<readonly string[]>;
  /**
   * Deletes rows of replacements that nothing needs any more, such as deliveries that ended before `finishedSinceMs`.
   * Returns how many it deleted.
   */
  cleanReplacements(
    table: PartitionedTable,
    finishedSinceMs: number,
    isStopped: () => boolean,
  ): Promise<number>;
}

export interface ExpiredDeadLetters {
  readonly count: number;
  /** Endpoints whose lane a dead letter may have blocked. */
  readonly endpointIds: readonly Uuid[];
}

export interface RowExpirer {
  /**
   * Deletes the payloads of up to `max` events in partitions that ended before `cutoffMs`, unless a delivery that waits or
   * is dead needs them. Returns false if no such partition is left.
   */
  stripPayloads(cutoffMs: number, max: number): Promise<boolean>;
  /** Moves up to `max` dead letters that died before `cutoffMs` to the history, as discarded. */
  expireDeadLetters(cutoffMs: number, max: number): Promise<ExpiredDeadLetters>;
  /** Tenants with a retention of their own. */
  listTenantRetentions(): Promise<readonly { readonly tenant: string; readonly days: number }[]>;
  /** Deletes up to `max` events of the tenant that nothing needs any more. Returns where to continue. Null: none is left. */
  deleteTenantEvents(tenant: string, cutoffMs: number, after: Uuid | null, max: number): Promise<Uuid | null>;
}

export interface RetentionStore extends PartitionDropper, RowExpirer {}
