/** Looks into an archive without a database: lists, verifies and searches its files. */
import {
  ArchiveError,
  type ArchiveKind,
  folderOf,
  type Manifest,
  type ManifestFile,
  manifestNameOf,
} from '../domain/archive.ts';
import { partitionedTables } from '../domain/retention.ts';
import type { ColumnValue, ColumnValues } from './columns.ts';
import { examineFile, selectRows } from './part-reader.ts';
import type { ArchiveTarget } from './targets/target.ts';

const MANIFEST = /^(\w+)\/day=([\d-]+)\/manifest\.json$/;

/** The manifests of an archive, by kind and day. */
export async function readManifests(
  target: ArchiveTarget,
  filter: { readonly kind?: ArchiveKind | undefined; readonly day?: string | undefined } = {},
): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  for (const kind of partitionedTables) {
    if (filter.kind !== undefined && filter.kind !== kind) continue;
    const days =
      filter.day === undefined
        ? (await target.list(`${kind}/`)).flatMap((name) => MANIFEST.exec(name)?.[2] ?? [])
        : [filter.day];
    for (const day of days) {
      const text = await target.readText(manifestNameOf(kind, day));
      if (text !== null) manifests.push(parseManifest(manifestNameOf(kind, day), text));
    }
  }
  return manifests;
}

function parseManifest(name: string, text: string): Manifest {
  try {
    return JSON.parse(text) as Manifest;
  } catch (error) {
    throw new ArchiveError(`${name} is not JSON.`, { cause: error });
  }
}

/** What is wrong with the files of a manifest. Empty: nothing. */
export async function verifyDay(target: ArchiveTarget, manifest: Manifest): Promise<string[]> {
  const { kind, day } = manifest;
  const problems: string[] = [];
  for (const file of manifest.files) {
    const name = `${folderOf(kind, day)}/${file.name}`;
    try {
      problems.push(...(await target.withFile(name, (path) => compare(kind, name, path, file))));
    } catch (error) {
      problems.push(`${name} cannot be read: ${(error as Error).message}`);
    }
  }
  const known = new Set(manifest.files.map(({ name }) => `${folderOf(kind, day)}/${name}`));
  for (const name of await target.list(`${folderOf(kind, day)}/`))
    if (name.endsWith('.parquet') && !known.has(name)) problems.push(`${name} is not in the manifest`);
  return problems;
}

async function compare(kind: ArchiveKind, name: string, path: string, file: ManifestFile): Promise<string[]> {
  const found = await examineFile(kind, path);
  const expected = [
    ['rows', file.rows, found.rows],
    ['bytes', file.bytes, found.bytes],
    ['sha256', file.sha256, found.sha256],
    ['rows_sha256', file.rows_sha256, found.rowsSha256],
  ] as const;
  return expected
    .filter(([, wanted, is]) => wanted !== is)
    .map(([field, wanted, is]) => `${name}: ${field} is ${is}, the manifest says ${wanted}`);
}

export interface RowFilter {
  /** Values by column. A row must have all of them. */
  readonly columns: Readonly<Record<string, string>>;
}

/**
 * Calls `onRow` with each row that matches, as a JSON object. Bytes are shown as text if they are UTF-8, otherwise in base64. It holds one
 * row group in memory, however many rows match.
 */
export async function searchDay(
  target: ArchiveTarget,
  { kind, day, files }: Manifest,
  { columns }: RowFilter,
  onRow: (row: Record<string, unknown>) => void,
): Promise<void> {
  for (const { name, min_id, max_id } of files) {
    const id = kind === 'events' ? columns.id : undefined;
    // Public ids have the order of their times.
    if (id !== undefined && min_id !== null && max_id !== null && (id < min_id || id > max_id)) continue;
    await target.withFile(`${folderOf(kind, day)}/${name}`, (path) =>
      selectRows(path, columns, (values) => onRow(show(values))),
    );
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function show(values: ColumnValues): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of Object.keys(values)) shown[name] = showValue(values[name]);
  return shown;
}

function showValue(value: ColumnValue | undefined): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return new Date(Number(value / 1000n)).toISOString();
  if (!(value instanceof Uint8Array)) return value;
  try {
    return strict.decode(value);
  } catch {
    return { base64: Buffer.from(value).toString('base64') };
  }
}
