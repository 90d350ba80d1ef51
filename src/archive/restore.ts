/** Restores a day or one event from the archive. Rows that the database has stay as they are. */
import { ArchiveError, type ArchiveKind, partNameOf } from '../domain/archive.ts';
import { deliveryRangeOfEvent, type Uuid } from '../domain/ids.ts';
import type { ArchivedRow } from '../ports/archive-rows.ts';
import type { ArchiveStore, RecordedPart, RestoreTask } from '../ports/archive-store.ts';
import { isStoreOutage, StoreError } from '../ports/store-error.ts';
import { formatOf } from './columns.ts';
import { readRows } from './part-reader.ts';
import type { ArchiveTarget } from './targets/target.ts';

export interface RestoreOptions {
  readonly store: ArchiveStore;
  readonly target: ArchiveTarget;
  /** How long retention keeps the restored rows. */
  readonly keepMs: number;
}

/** Events first: the API finds deliveries and attempts through their event. */
const ORDER: readonly ArchiveKind[] = ['events', 'deliveries', 'attempts'];
const ROWS_PER_INSERT = 500;
const BYTES_PER_INSERT = 8 * 1024 * 1024;

/** Runs and ends the task. Throws only if the store is unavailable: then another process continues the task. */
export async function runRestore(task: RestoreTask, options: RestoreOptions): Promise<void> {
  try {
    await restoreAll(task, options);
  } catch (error) {
    if (isStoreOutage(error)) throw error;
    await options.store.endRestore(task, (error as Error).message);
  }
}

async function restoreAll(task: RestoreTask, options: RestoreOptions): Promise<void> {
  const { store, keepMs } = options;
  const parts = await findParts(task, options);
  if (parts.length === 0) {
    await store.endRestore(task, `Nothing of ${task.day} is in the archive.`);
    return;
  }
  const total = task.eventId === null ? parts.reduce((sum, { rows }) => sum + rows, 0) : 0;
  await store.beginRestore(task, keepMs, total);
  let restored = 0;
  for (const part of parts) {
    const count = await restorePart(part.kind, part, task, options).catch((error: unknown) => {
      if (error instanceof ArchiveError || error instanceof StoreError) throw error;
      throw new ArchiveError(`${partNameOf(part)} cannot be read: ${(error as Error).message}`, {
        cause: error,
      });
    });
    if (count === null) return;
    restored += count;
  }
  await store.endRestore(task, restored === 0 ? 'The event is not in the archive.' : null);
}

async function findParts(
  { day, eventId }: RestoreTask,
  { store, target }: RestoreOptions,
): Promise<RecordedPart[]> {
  const parts: RecordedPart[] = [];
  for (const kind of ORDER) parts.push(...(await store.listParts({ kind, day })));
  const elsewhere = parts.find(({ archive }) => archive !== target.url);
  if (elsewhere !== undefined)
    throw new ArchiveError(
      `${partNameOf(elsewhere)} is in the archive ${elsewhere.archive}, not in ${target.url}. Set POSTHORN_ARCHIVE_URL to it.`,
    );
  if (eventId === null) return parts;
  const [first, last] = deliveryRangeOfEvent(eventId);
  return parts.filter(({ minId, maxId }) => minId !== null && minId <= last && maxId! >= first);
}

/** Returns how many rows it found. Null: the task was cancelled. */
async function restorePart<K extends ArchiveKind>(
  kind: K,
  part: RecordedPart,
  task: RestoreTask,
  { store, target }: RestoreOptions,
): Promise<number | null> {
  const { keyOf, sizeOf } = formatOf(kind);
  const isWanted = selectorOf(task.eventId);
  return target.withFile(partNameOf(part), async (file) => {
    let found = 0;
    for await (const group of readRows(kind, file)) {
      let chunk: ArchivedRow[] = [];
      let bytes = 0;
      for (const [n, row] of group.entries()) {
        if (isWanted(keyOf(row))) {
          chunk.push(row);
          bytes += sizeOf(row);
        }
        const isEnd = n === group.length - 1;
        if (chunk.length === 0 || !(isEnd || chunk.length >= ROWS_PER_INSERT || bytes >= BYTES_PER_INSERT))
          continue;
        found += chunk.length;
        if (!(await store.restoreRows(task, kind, chunk))) return null;
        chunk = [];
        bytes = 0;
      }
    }
    return found;
  });
}

function selectorOf(eventId: Uuid | null): (key: Uuid) => boolean {
  if (eventId === null) return () => true;
  const [first, last] = deliveryRangeOfEvent(eventId);
  return (key) => key >= first && key <= last;
}
