/** Rewrites files that contain something that was expunged since they were written. */
import { ArchiveError, type ArchiveKind, partNameOf } from '../domain/archive.ts';
import { idPrefixes, parsePublicId, type Uuid } from '../domain/ids.ts';
import type { ArchiveStore, StalePart, Tombstones } from '../ports/archive-store.ts';
import { findExpungedBatch, withoutExpunged } from '../ports/expunged-rows.ts';
import { isStoreOutage } from '../ports/store-error.ts';
import { writeManifest } from './export-partition.ts';
import { examineFile, type FileContent, readRows } from './part-reader.ts';
import type { ArchiveTarget } from './targets/target.ts';
import { writePart } from './write-part.ts';

export interface RewriteOptions {
  readonly store: ArchiveStore;
  readonly target: ArchiveTarget;
  readonly onRewritten?: ((part: StalePart) => void) | undefined;
}

/** Throws if the file is missing or damaged. The part then stays stale, and the next run tries again. */
export async function rewritePart(part: StalePart, options: RewriteOptions): Promise<void> {
  const { target } = options;
  if (part.archive !== target.url)
    throw new ArchiveError(
      `${partNameOf(part)} contains expunged data and is in the archive ${part.archive}, not in ${target.url}. Set POSTHORN_ARCHIVE_URL to it.`,
    );
  try {
    await rewriteKind(part.kind, part, options);
  } catch (error) {
    if (error instanceof ArchiveError || isStoreOutage(error)) throw error;
    throw new ArchiveError(`${partNameOf(part)} cannot be rewritten: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function rewriteKind<K extends ArchiveKind>(
  kind: K,
  part: StalePart,
  { store, target, onRewritten }: RewriteOptions,
): Promise<void> {
  const name = partNameOf(part);
  const written = await target.withFile(name, async (file) => {
    const tombstones = await findTombstones(kind, file, part, store);
    // Most files contain no expunged data. They stay as they are.
    if (!(await contains(kind, file, tombstones))) return null;
    return writePart(target, {
      kind,
      day: part.day,
      part: part.part,
      fill: async (writer) => {
        for await (const rows of readRows(kind, file))
          for (const row of rows) {
            const left = withoutExpunged(kind, row, tombstones);
            if (left !== null) writer.add(left);
          }
        await store.confirmExclusion();
      },
    });
  });
  const found = written ?? (await examineUnchanged(kind, part, target));
  // Keep the range of keys: an unfinished export continues after it.
  const { minId, maxId } = part;
  await store.replacePart({ ...part, ...found, minId, maxId });
  await writeManifest({ store, target }, kind, part.day);
  // Do this last: if the process is killed before, the next one writes record and manifest again.
  await store.clearStale(part);
  if (written !== null) onRewritten?.(part);
}

/**
 * Answers to batches with an expunged event are expunged too. If the event is only in the archive, only the archive knows which
 * batches these are.
 */
async function findTombstones(
  kind: ArchiveKind,
  file: string,
  part: StalePart,
  store: ArchiveStore,
): Promise<Tombstones> {
  const tombstones = await store.readTombstones(part);
  if (kind !== 'attempts' || tombstones.events.size === 0) return tombstones;
  const batches = new Set<Uuid>();
  for await (const rows of readRows(kind, file))
    for (const row of rows) {
      const batch = findExpungedBatch(row, tombstones);
      const id = batch === null ? null : parsePublicId(idPrefixes.batch, batch);
      if (id !== null) batches.add(id);
    }
  if (batches.size === 0) return tombstones;
  await store.addBatchTombstones([...batches].sort());
  return store.readTombstones(part);
}

/** A process that was killed may have rewritten the file without recording it. Rows may be gone, but not added. */
async function examineUnchanged(
  kind: ArchiveKind,
  part: StalePart,
  target: ArchiveTarget,
): Promise<FileContent> {
  const name = partNameOf(part);
  const found = await target.withFile(name, (file) => examineFile(kind, file));
  if (found.rows > part.rows)
    throw new ArchiveError(`${name} has ${found.rows} rows, but ${part.rows} were written to it.`);
  return found;
}

async function contains<K extends ArchiveKind>(
  kind: K,
  file: string,
  tombstones: Tombstones,
): Promise<boolean> {
  for await (const rows of readRows(kind, file))
    if (rows.some((row) => withoutExpunged(kind, row, tombstones) !== row)) return true;
  return false;
}
