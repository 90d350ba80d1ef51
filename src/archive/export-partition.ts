/**
 * Exports one partition: day by day, part by part, in the order of the keys. It reads without a snapshot, so that a long
 * export does not keep VACUUM from the queue, and rests between statements (pace.ts). At the end it compares the number of
 * rows of each day in the archive with that in the database, and writes days again that differ: a late result or an expunge
 * can change rows of an expired partition. It also writes days again whose file is missing or has another size: an earlier
 * process wrote the file, and it may be lost since.
 */
import {
  ArchiveError,
  type ArchiveKind,
  dayOf,
  endOfDay,
  folderOf,
  makeManifest,
  manifestNameOf,
  partNameOf,
  startOfDay,
} from '../domain/archive.ts';
import { firstIdAt, publicId, timeOfId, type Uuid } from '../domain/ids.ts';
import type { RowsByKind } from '../ports/archive-rows.ts';
import type { ArchiveStore, RecordedPart, RowRange } from '../ports/archive-store.ts';
import type { Partition } from '../ports/retention-store.ts';
import { isStoreOutage } from '../ports/store-error.ts';
import { formatOf } from './columns.ts';
import { ArchiveStoppedError } from './pace.ts';
import type { PartWriter, WrittenFile } from './part-writer.ts';
import type { ArchiveTarget } from './targets/target.ts';
import { type PartStep, writePart } from './write-part.ts';

export type ExportStep = PartStep | 'manifest' | 'count' | 'mark';

export interface ExportOptions {
  readonly store: ArchiveStore;
  readonly target: ArchiveTarget;
  /** Called between statements, without a transaction. Throws `ArchiveStoppedError` to stop the export. */
  readonly rest: () => Promise<void>;
  /** Called after each file. An export that rests may take hours. */
  readonly betweenParts?: (() => Promise<void>) | undefined;
  /** Called before each step. Tests kill the process here. */
  readonly onStep?: ((step: ExportStep) => void) | undefined;
  readonly onProgress?: ((exported: { readonly rows: number; readonly bytes: number }) => void) | undefined;
}

const ROWS_PER_READ = 5_000;
const BYTES_PER_READ = 8 * 1024 * 1024;
/** How often days that changed during the export are written again. */
const MAX_ROUNDS = 3;
const REPORT_EVERY_MS = 1_000;

/** Resolves when every row of the partition is in the archive, verified. Throws `ArchiveError` if that is not possible. */
export async function exportPartition(partition: Partition, options: ExportOptions): Promise<number> {
  return new PartitionExport(partition, options).run();
}

class PartitionExport {
  readonly #partition: Partition;
  readonly #options: ExportOptions;
  readonly #from: Uuid;
  readonly #to: Uuid;
  #task: Uuid | null = null;
  /** Days whose manifest was written in this round. */
  #written = new Set<string>();
  #total = 0;
  #done = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(partition: Partition, options: ExportOptions) {
    this.#partition = partition;
    this.#options = options;
    this.#from = firstIdAt(partition.fromMs);
    this.#to = firstIdAt(partition.toMs);
  }

  async run(): Promise<number> {
    const { store, rest } = this.#options;
    this.#total = await store.estimateRows(this.#partition, rest);
    this.#task = await store.openTask(this.#partition, this.#total);
    try {
      const rows = await this.#exportAll();
      this.#step('mark');
      await store.markVerified(this.#partition.name, rows);
      await store.reportProgress(this.#task, { done: rows, total: rows });
      await store.closeTask(this.#task, null);
      return rows;
    } catch (error) {
      // The next run continues a task that was not closed.
      if (!isStoreOutage(error) && !(error instanceof ArchiveStoppedError))
        await store.closeTask(this.#task, (error as Error).message);
      throw error;
    }
  }

  async #exportAll(): Promise<number> {
    const { store } = this.#options;
    const { name } = this.#partition;
    for (let round = 1; ; round += 1) {
      await this.#exportDays();
      this.#step('count');
      const changed = [
        ...new Set([...(await this.#findChangedDays()), ...(await this.#findLostDays())]),
      ].sort();
      if (changed.length === 0) break;
      if (round === MAX_ROUNDS)
        throw new ArchiveError(
          `The rows of ${name} keep changing (${changed.join(', ')}), so its archive cannot be verified. Posthorn tries again.`,
        );
      await store.forgetParts(name, changed);
    }
    await this.#cleanOtherDays();
    const parts = await store.listParts({ partition: name });
    return parts.reduce((sum, { rows }) => sum + rows, 0);
  }

  async #exportDays(): Promise<void> {
    const { store } = this.#options;
    const { table, name } = this.#partition;
    this.#done = 0;
    this.#written.clear();
    for (let from: Uuid = this.#from; ; ) {
      const first = await store.findFirstKey(table, from, this.#to);
      if (first === null) return;
      const day = dayOf(timeOfId(first));
      await this.#exportDay(day);
      const parts = await store.listParts({ kind: table, day });
      this.#done += sumRows(parts.filter(({ partition }) => partition === name));
      from = firstIdAt(endOfDay(day));
    }
  }

  /**
   * Deletes files of days that have no rows any more, for instance because their tenant was expunged during the export. Also after
   * a process that was killed before it could do so.
   */
  async #cleanOtherDays(): Promise<void> {
    const { target } = this.#options;
    const { table, fromMs, toMs } = this.#partition;
    for (let ms = fromMs; ms < toMs; ms = endOfDay(dayOf(ms))) {
      const day = dayOf(ms);
      if (!this.#written.has(day) && (await target.list(`${folderOf(table, day)}/`)).length > 0)
        await this.#writeManifest(day);
    }
  }

  async #exportDay(day: string): Promise<void> {
    const { store, target } = this.#options;
    const { table, name, fromMs, toMs } = this.#partition;
    const ofDay = await store.listParts({ kind: table, day });
    const recorded = ofDay.filter(({ partition }) => partition === name);
    const to = firstIdAt(Math.min(endOfDay(day), toMs));
    let from = firstIdAt(Math.max(startOfDay(day), fromMs));
    let last = recorded.at(-1)?.maxId ?? null;
    let done = this.#done + sumRows(recorded);
    for (let part = (ofDay.at(-1)?.part ?? -1) + 1; ; part += 1) {
      // Parts end with the last row of a key.
      if (last !== null) from = afterKey(last);
      if ((await store.findFirstKey(table, from, to)) === null) break;
      const lastTombstone = await store.readLastTombstone();
      const range = { from, to, after: null };
      const written = await writePart(
        target,
        {
          kind: table,
          day,
          part,
          fill: (writer) => this.#fill(writer, range, done).then(() => store.confirmExclusion()),
        },
        { rest: this.#options.rest, onStep: (step) => this.#step(step) },
      );
      await store.recordPart({ ...this.#recordOf(day, part, written) }, lastTombstone);
      last = written.maxId;
      done += written.rows;
      this.#options.onProgress?.({ rows: written.rows, bytes: written.bytes });
      await this.#options.betweenParts?.();
    }
    await this.#writeManifest(day);
  }

  async #fill<K extends ArchiveKind>(
    writer: PartWriter<K>,
    range: RowRange,
    doneBefore: number,
  ): Promise<void> {
    const { store } = this.#options;
    const kind = this.#partition.table as K;
    const { keyOf } = formatOf(kind);
    let { after } = range;
    let maxRows = ROWS_PER_READ;
    for (;;) {
      let rows: readonly RowsByKind[K][];
      try {
        rows = await store.readRows(kind, { ...range, after }, maxRows, BYTES_PER_READ);
      } catch (error) {
        if (isStoreOutage(error)) throw error;
        if (maxRows > 1) {
          // Read the rows one by one, to find the one that cannot be read.
          maxRows = 1;
          continue;
        }
        throw new ArchiveError(
          `A row of ${this.#partition.name} cannot be read: ${describeAfter(kind, after?.key ?? null)}. ${(error as Error).message}`,
          { cause: error },
        );
      }
      for (const row of rows) {
        if (writer.isFull && keyOf(row) !== writer.lastKey) return;
        addRow(kind, writer, row);
      }
      const end = rows.at(-1);
      if (end === undefined) return;
      after = { key: keyOf(end), id: (end as { readonly id: Uuid }).id };
      await this.#report(doneBefore + writer.rows);
      await this.#options.rest();
    }
  }

  /** Not after every read: each report is a commit. */
  async #report(done: number): Promise<void> {
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_EVERY_MS) return;
    this.#reportedAt = now;
    await this.#options.store.reportProgress(this.#task!, { done, total: this.#total });
  }

  #recordOf(day: string, part: number, written: WrittenFile): RecordedPart {
    const { name, table } = this.#partition;
    return { ...written, kind: table, day, part, partition: name, archive: this.#options.target.url };
  }

  async #writeManifest(day: string): Promise<void> {
    this.#step('manifest');
    await writeManifest(this.#options, this.#partition.table, day);
    this.#written.add(day);
  }

  /** Days whose rows in the database are not those in the archive. */
  async #findChangedDays(): Promise<string[]> {
    const { store, rest } = this.#options;
    const { table, name, fromMs, toMs } = this.#partition;
    const archived = new Map<string, number>();
    for (const { day, rows } of await store.listParts({ partition: name }))
      archived.set(day, (archived.get(day) ?? 0) + rows);
    const changed: string[] = [];
    for (let ms = fromMs; ms < toMs; ms = endOfDay(dayOf(ms))) {
      const day = dayOf(ms);
      const to = firstIdAt(Math.min(endOfDay(day), toMs));
      const rows = await store.countRows(table, firstIdAt(ms), to, rest);
      if (rows !== (archived.get(day) ?? 0)) changed.push(day);
    }
    return changed;
  }

  /** Days with files that are not in the archive as they are recorded. */
  async #findLostDays(): Promise<string[]> {
    const { store, target } = this.#options;
    const days: string[] = [];
    for (const part of await store.listParts({ partition: this.#partition.name })) {
      if (part.archive !== target.url)
        throw new ArchiveError(
          `${partNameOf(part)} is in the archive ${part.archive}, not in ${target.url}. Set POSTHORN_ARCHIVE_URL to it until ${part.partition} is archived.`,
        );
      if ((await target.sizeOf(partNameOf(part))) !== part.bytes) days.push(part.day);
    }
    return days;
  }

  #step(step: ExportStep): void {
    this.#options.onStep?.(step);
  }
}

/** Writes the manifest of a day from what the store records, and reads it back. */
export async function writeManifest(
  { store, target }: Pick<ExportOptions, 'store' | 'target'>,
  kind: ArchiveKind,
  day: string,
): Promise<void> {
  const { keyPrefix } = formatOf(kind);
  const show = (id: Uuid | null): string | null => (id === null ? null : publicId(keyPrefix, id));
  const parts = await store.listParts({ kind, day });
  const shown = parts.map((part) => ({ ...part, minId: show(part.minId), maxId: show(part.maxId) }));
  const text = `${JSON.stringify(makeManifest(kind, day, shown), null, 2)}\n`;
  const name = manifestNameOf(kind, day);
  await target.putText(name, text);
  if ((await target.readText(name)) !== text)
    throw new ArchiveError(`${name} differs from what was written.`);
  // Files of a process that was killed, or of an export that was repeated: queries over the folder would count their rows twice.
  const folder = `${folderOf(kind, day)}/`;
  const known = new Set(parts.map((part) => partNameOf(part)));
  for (const found of await target.list(folder))
    if (found.endsWith('.parquet') && !known.has(found)) {
      await store.confirmExclusion();
      await target.remove(found);
    }
}

function addRow<K extends ArchiveKind>(kind: K, writer: PartWriter<K>, row: RowsByKind[K]): void {
  try {
    writer.add(row);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
    const { keyOf, keyPrefix } = formatOf(kind);
    throw new ArchiveError(
      `The row ${publicId(keyPrefix, keyOf(row))}, or one shortly before it, cannot be written to Parquet: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

const sumRows = (parts: readonly RecordedPart[]): number => parts.reduce((sum, { rows }) => sum + rows, 0);

/** The smallest id after this one. */
function afterKey(id: Uuid): Uuid {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return `${next.slice(0, 8)}-${next.slice(8, 12)}-${next.slice(12, 16)}-${next.slice(16, 20)}-${next.slice(20)}`;
}

function describeAfter(kind: ArchiveKind, key: Uuid | null): string {
  return key === null ? 'the first one' : `the one after ${publicId(formatOf(kind).keyPrefix, key)}`;
}
