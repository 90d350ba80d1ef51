/** What an archive contains and how it is named. Pure. See docs/retention.md#archive. */
import { DAY_MS, type PartitionedTable } from './retention.ts';

/** Increase this when earlier versions would misread a file. */
export const ARCHIVE_SCHEMA_VERSION = 1;

export type ArchiveKind = PartitionedTable;

/** One Parquet file, as the manifest of its day lists it. */
export interface ArchivedPart {
  readonly kind: ArchiveKind;
  /** UTC, such as `2026-11-15`. */
  readonly day: string;
  readonly part: number;
  readonly rows: number;
  readonly bytes: number;
  /** The checksum of the file. */
  readonly sha256: string;
  /** The checksum of the values in it. */
  readonly rowsSha256: string;
  /** Public ids of the first and last event or delivery. Null: the file has no rows. */
  readonly minId: string | null;
  readonly maxId: string | null;
}

export interface ManifestFile {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly rows_sha256: string;
  readonly min_id: string | null;
  readonly max_id: string | null;
}

export interface Manifest {
  readonly schema_version: number;
  readonly kind: ArchiveKind;
  readonly day: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: readonly ManifestFile[];
}

export const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);
export const startOfDay = (day: string): number => Date.parse(`${day}T00:00:00.000Z`);
export const endOfDay = (day: string): number => startOfDay(day) + DAY_MS;

const DAY = /^\d{4}-\d{2}-\d{2}$/;
export const isDay = (text: string): boolean =>
  DAY.test(text) && !Number.isNaN(startOfDay(text)) && dayOf(startOfDay(text)) === text;

export const folderOf = (kind: ArchiveKind, day: string): string => `${kind}/day=${day}`;
export const partFileOf = (part: number): string => `part-${String(part).padStart(4, '0')}.parquet`;
export const partNameOf = ({ kind, day, part }: Pick<ArchivedPart, 'kind' | 'day' | 'part'>): string =>
  `${folderOf(kind, day)}/${partFileOf(part)}`;
export const manifestNameOf = (kind: ArchiveKind, day: string): string =>
  `${folderOf(kind, day)}/manifest.json`;

/** The manifest of a day. The same parts always make the same text. */
export function makeManifest(kind: ArchiveKind, day: string, parts: readonly ArchivedPart[]): Manifest {
  const files = parts
    .toSorted((a, b) => a.part - b.part)
    .map((part) => ({
      name: partFileOf(part.part),
      rows: part.rows,
      bytes: part.bytes,
      sha256: part.sha256,
      rows_sha256: part.rowsSha256,
      min_id: part.minId,
      max_id: part.maxId,
    }));
  const sum = (field: 'rows' | 'bytes'): number => files.reduce((total, file) => total + file[field], 0);
  return {
    schema_version: ARCHIVE_SCHEMA_VERSION,
    kind,
    day,
    rows: sum('rows'),
    bytes: sum('bytes'),
    files,
  };
}

/** A problem of the archive that an operator can fix. The message says what to do. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** The archive has no room, so nothing else can be written to it either. */
export class ArchiveFullError extends ArchiveError {}

/** Whether an error of the file system means that there is no room. */
export const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as { readonly code?: string }).code ?? '');
