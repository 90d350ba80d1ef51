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
  /** When it was marked. The mark stays if this has changed since. */
  readonly staleAt: string;
}

/** What was expunged since: archived copies must not contain it. */
export interface Tombstones {
  /** Events whose payload was deleted, with the time of the deletion in milliseconds. */
  readonly events: ReadonlyMap<Uuid, number>;
  /** Tenants whose data from before this time was deleted. */
  readonly tenants: ReadonlyMap<string, number>;
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
  /** Identifies this deployment. Two must not write to the same archive. */
  readDeploymentId(): Promise<Uuid>;
  /** Whether files are recorded in the archive with this URL. */
  hasParts(archive: string): Promise<boolean>;
  /** Calls `work` unless another process works on the archive. Returns whether it called it. A crash ends the exclusion. */
  runExclusively(work: () => Promise<void>): Promise<boolean>;
  /** Throws if the exclusion was lost: another process may work on the archive now. Call it before a file is replaced or deleted. */
  confirmExclusion(): Promise<void>;

  /** Partitions that retention wants to drop and that are not verified, oldest first. */
  listRequested(): Promise<readonly Partition[]>;
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
  countRows(kind: ArchiveKind, from: Uuid, to: Uuid): Promise<number>;
  /** The time of the store, by whose clock expunges are dated: milliseconds since 1970. */
  readTime(): Promise<number>;
  /** Records a part that was read back. `startedAt`: the time of the store before its rows were read. What was expunged since then makes the part stale at once. */
  recordPart(part: RecordedPart, startedAt: number): Promise<void>;
  /** Forgets parts of a partition, so that they are written again. */
  forgetParts(partition: string, days: readonly string[]): Promise<void>;
  markVerified(partition: string, rows: number): Promise<void>;

  /** Shows the export of a partition as a task. Repeating it continues the task. */
  openTask(partition: Partition, total: number): Promise<Uuid>;
  reportProgress(task: Uuid, progress: ArchiveProgress): Promise<void>;
  /** `error` null: the task is done. */
  closeTask(task: Uuid, error: string | null): Promise<void>;

  /** Remembers why the archive cannot be written, so that an operational event tells of it. Null: it can be written again. */
  setFailure(failure: { readonly partition: string | null; readonly message: string } | null): Promise<void>;

  /** Parts that contain something that was expunged, oldest first. */
  listStaleParts(): Promise<readonly StalePart[]>;
  readTombstones(part: Pick<RecordedPart, 'minId' | 'maxId'>): Promise<Tombstones>;
  /** Replaces the record of a part that was rewritten. It stays stale. */
  replacePart(part: StalePart): Promise<void>;
  /** The part contains nothing that was expunged before `staleAt`. It stays stale if something was expunged since. */
  clearStale(part: StalePart): Promise<void>;

  claimRestore(runner: Uuid, silentMs: number): Promise<RestoreTask | null>;
  /** Protects the rows of a restore from retention, and says how many rows will be read. */
  beginRestore(task: RestoreTask, keepMs: number, total: number): Promise<void>;
  /** Inserts rows that are not there, unless they were expunged, and records the progress. False: the task was cancelled. */
  restoreRows(task: RestoreTask, kind: ArchiveKind, rows: readonly ArchivedRow[]): Promise<boolean>;
  /** `error` null: the task is done. */
  endRestore(task: RestoreTask, error: string | null): Promise<void>;
}

/** What retention and the servers need to know about the archive. */
export interface ArchiveRequests {
  /** From now on no server may drop a partition that is not in the archive, not even one that has no archive. */
  requireArchive(): Promise<void>;
  /** For a server without an archive: whether it may drop the partition. If other servers have one, asks for the export. */
  mayDrop(partition: Partition): Promise<boolean>;
  /** Requires the archive, and asks for the export of a partition, unless it was asked for. Returns whether it is in the archive, verified. */
  request(partition: Partition): Promise<boolean>;
  /** Whether the archive process has something to do. */
  hasWork(): Promise<boolean>;
}
