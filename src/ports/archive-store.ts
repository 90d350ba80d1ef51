/**
 * What the store knows about the archive. A partition goes through these states, and each change is one commit:
 *
 *   requested ──▶ parts recorded, one by one ──▶ verified ──▶ dropped by retention
 *
 * A part is recorded after its file was written, read back and compared. So a process that is killed repeats at most one
 * part, under the same name.
 */
import type { ArchivedPart, ArchiveKind } from '../domain/archive.ts';
import type { Uuid } from '../domain/ids.ts';
import type { StoredTombstone } from '../domain/tombstones.ts';
import type { ArchivedRow, RowsByKind } from './archive-rows.ts';
import type { Partition } from './retention-store.ts';

/** A part as the store records it. */
export interface RecordedPart extends Omit<ArchivedPart, 'minId' | 'maxId'> {
  readonly partition: string;
  /** The URL of the archive that contains it. */
  readonly archive: string;
  /** Keys of the first and last row: of the event, the delivery, or the delivery of the attempt. */
  readonly minId: Uuid | null;
  readonly maxId: Uuid | null;
  /** Null: too many to list. */
  readonly tenants: readonly string[] | null;
}

/** A part that contains something that was expunged. */
export interface StalePart extends RecordedPart {
  /** When the part was marked as stale. `clearStale` keeps the mark if this time has changed since. */
  readonly staleAt: string;
}

/** What was expunged. Archived copies must not contain it. */
export interface Tombstones {
  /** Events whose payload was deleted, with the time of the deletion in milliseconds. */
  readonly events: ReadonlyMap<Uuid, number>;
  /** Tenants whose data from before this time was deleted. */
  readonly tenants: ReadonlyMap<string, number>;
  /** Public ids of batches whose answers were deleted, because they contained one of these events. */
  readonly batches: ReadonlySet<string>;
}

/** The copy of the tombstones in the archive. */
export interface TombstoneCopy {
  /** Identifies the copy that the store wrote or read last. Null: none. */
  readonly token: Uuid | null;
  /** The number of the last tombstone in it. */
  readonly upTo: string;
}

export interface RowRange {
  readonly from: Uuid;
  /** Exclusive. */
  readonly to: Uuid;
  /** Continue after this row. */
  readonly after: { readonly key: Uuid; readonly id: Uuid } | null;
}

export interface RestoreTask {
  readonly id: Uuid;
  readonly runner: Uuid;
  /** Null: the whole day. */
  readonly eventId: Uuid | null;
  /** UTC, such as `2026-11-15`. */
  readonly day: string;
}

export interface ArchiveProgress {
  readonly done: number;
  readonly total: number;
}

export interface ArchiveStore {
  /** Identifies this deployment. Two deployments must not write to the same archive. */
  readDeploymentId(): Promise<Uuid>;
  /** Whether files are recorded in the archive with this URL. */
  hasParts(archive: string): Promise<boolean>;
  /** Calls `work` unless another process works on the archive. Returns whether it called it. A crash ends the exclusion. */
  runExclusively(work: () => Promise<void>): Promise<boolean>;
  /** Throws if the exclusion was lost: another process may work on the archive now. Call it before a file is replaced or deleted. */
  confirmExclusion(): Promise<void>;

  /** Partitions that retention wants to drop and that are not verified, oldest first. */
  listRequested(): Promise<readonly Partition[]>;
  /**
   * Whether exports must run without pauses: a partition has waited for its export for a day, or a younger one of its kind has expired too.
   * `days`: how long each kind is kept.
   */
  isBehind(days: Readonly<Record<ArchiveKind, number>>): Promise<boolean>;
  listParts(filter: {
    readonly kind?: ArchiveKind;
    readonly day?: string;
    readonly partition?: string;
  }): Promise<readonly RecordedPart[]>;
  /** The key of the first row at or after `from`. Null: there is none before `to`. */
  findFirstKey(kind: ArchiveKind, from: Uuid, to: Uuid): Promise<Uuid | null>;
  /** The next rows of the range in the order of their keys. At least one, if there are any; the others fit into `maxBytes`. */
  readRows<K extends ArchiveKind>(
    kind: K,
    range: RowRange,
    maxRows: number,
    maxBytes: number,
  ): Promise<readonly RowsByKind[K][]>;
  /** Counts in short statements, and awaits `rest`, a pause, after each. */
  countRows(kind: ArchiveKind, from: Uuid, to: Uuid, rest?: () => Promise<void>): Promise<number>;
  /** Estimates the rows of a partition. Awaits `rest`, a pause, between statements if it must count them. */
  estimateRows(partition: Partition, rest?: () => Promise<void>): Promise<number>;
  /** Identifies the last expunge. A number and not a time: the clock of the store may be set back. */
  readLastTombstone(): Promise<string>;
  /**
   * Records a part that was read back. `lastTombstone`: the last expunge before its rows were read. A later one makes the part
   * stale at once.
   */
  recordPart(part: RecordedPart, lastTombstone: string): Promise<void>;
  /** Forgets parts of a partition, so that they are written again. */
  forgetParts(partition: string, days: readonly string[]): Promise<void>;
  markVerified(partition: string, rows: number): Promise<void>;

  /** Shows the export of a partition as a task. Repeating it continues the task. */
  openTask(partition: Partition, total: number): Promise<Uuid>;
  reportProgress(task: Uuid, progress: ArchiveProgress): Promise<void>;
  /** `error` null: the task is done. */
  closeTask(task: Uuid, error: string | null): Promise<void>;

  /** Records why the archive cannot be written, for an operational event. Null: the archive can be written again. */
  setFailure(failure: { readonly partition: string | null; readonly message: string } | null): Promise<void>;

  /** Parts that contain something that was expunged, oldest first. */
  listStaleParts(): Promise<readonly StalePart[]>;
  readTombstones(part: Pick<RecordedPart, 'minId' | 'maxId'>): Promise<Tombstones>;
  /**
   * Adds tombstones for batches that contained an expunged event, which only the archive knew. Other parts with answers to these
   * batches become stale.
   */
  addBatchTombstones(batchIds: readonly Uuid[]): Promise<void>;
  /** Tombstones of a day (UTC), in the order of their numbers. */
  listTombstones(day: string): Promise<readonly StoredTombstone[]>;
  /** Days with tombstones that were written or applied after the one with this number. */
  listChangedDays(after: string): Promise<readonly string[]>;
  /** Adds tombstones that the store lacks, and applies them. Returns how many were new. */
  mergeTombstones(tombstones: readonly StoredTombstone[]): Promise<number>;
  readTombstoneCopy(): Promise<TombstoneCopy>;
  setTombstoneCopy(copy: TombstoneCopy): Promise<void>;
  /** Replaces the record of a part that was rewritten. It stays stale. */
  replacePart(part: StalePart): Promise<void>;
  /** The part contains nothing that was expunged before `staleAt`. It stays stale if something was expunged since. */
  clearStale(part: StalePart): Promise<void>;

  claimRestore(runner: Uuid, silentMs: number): Promise<RestoreTask | null>;
  /** Protects the rows of a restore from retention, and says how many rows will be read. */
  beginRestore(task: RestoreTask, keepMs: number, total: number): Promise<void>;
  /** Inserts rows that the store lacks, unless they were expunged, and records the progress. False: the task was cancelled. */
  restoreRows(task: RestoreTask, kind: ArchiveKind, rows: readonly ArchivedRow[]): Promise<boolean>;
  /** `error` null: the task is done. */
  endRestore(task: RestoreTask, error: string | null): Promise<void>;
}

/** What retention and the servers need to know about the archive. */
export interface ArchiveRequests {
  /** From now on no server may drop a partition that is not in the archive, not even one that has no archive. */
  requireArchive(): Promise<void>;
  /** For a server without an archive: returns whether it may drop the partition. If other servers have an archive, requests the export. */
  mayDrop(partition: Partition): Promise<boolean>;
  /** Requires the archive, and requests the export of a partition if it was not requested yet. Returns whether the partition is in the archive and verified. */
  request(partition: Partition): Promise<boolean>;
  /** Whether the archive process has something to do. */
  hasWork(): Promise<boolean>;
}
