/** Reads Parquet files of an archive, one row group at a time. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { zstdDecompressSync } from 'node:zlib';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetReadObjects,
  parquetSchema,
} from 'hyparquet';
import { ArchiveError, type ArchiveKind } from '../domain/archive.ts';
import type { RowsByKind } from '../ports/archive-rows.ts';
import { type ColumnValue, type ColumnValues, formatOf } from './columns.ts';
import { freeMemory } from './free-memory.ts';
import { ArchiveStoppedError } from './pace.ts';
import { ValueDigest } from './value-digest.ts';

// A byte order mark belongs to the value.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
const PARSERS = {
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && decoder.decode(bytes),
  timestampFromMicroseconds: (micros: bigint) => micros,
};

/** Node's own zstd is quicker than one in JavaScript. */
const decompress = (input: Uint8Array): Uint8Array => zstdDecompressSync(input);
const DECOMPRESSORS = { ZSTD: decompress };

const READING = { utf8: false, parsers: PARSERS, compressors: DECOMPRESSORS };

/** A group leaves about eight megabytes of garbage. */
const GROUPS_PER_COLLECTION = 4;

/** A row group of an open file. */
interface GroupOfFile {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly rowStart: number;
  readonly rowEnd: number;
}

async function* openGroups(path: string): AsyncGenerator<GroupOfFile> {
  const handle = await open(path, 'r');
  try {
    const file = await toAsyncBuffer(handle);
    const metadata: FileMetaData = await parquetMetadataAsync(file);
    let rowStart = 0;
    for (const [n, group] of metadata.row_groups.entries()) {
      const rowEnd = rowStart + Number(group.num_rows);
      yield { file, metadata, rowStart, rowEnd };
      rowStart = rowEnd;
      if (n % GROUPS_PER_COLLECTION === GROUPS_PER_COLLECTION - 1) freeMemory();
    }
  } finally {
    await handle.close();
  }
}

/** The values of each row of a row group. */
async function* readGroups(path: string): AsyncGenerator<ColumnValues[]> {
  for await (const group of openGroups(path))
    yield (await parquetReadObjects({ ...group, ...READING })) as ColumnValues[];
}

/** The values of one column of a row group. It needs less memory than rows do. */
async function readColumn(group: GroupOfFile, name: string): Promise<ColumnValue[]> {
  const values = new Array<ColumnValue>(group.rowEnd - group.rowStart);
  await parquetRead({
    ...group,
    ...READING,
    columns: [name],
    onChunk: ({ columnData, rowStart }) => {
      for (let n = 0; n < columnData.length; n += 1)
        values[rowStart - group.rowStart + n] = columnData[n] as ColumnValue;
    },
  });
  return values;
}

async function toAsyncBuffer(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const buffer = new ArrayBuffer(end - start);
      const { bytesRead } = await handle.read(new Uint8Array(buffer), 0, end - start, start);
      if (bytesRead !== end - start) throw new Error('the file is shorter than its index says');
      return buffer;
    },
  };
}

/** The rows of a file, one row group at a time. */
export async function* readRows<K extends ArchiveKind>(
  kind: K,
  path: string,
): AsyncGenerator<RowsByKind[K][]> {
  const { columns, toRow } = formatOf(kind);
  for await (const group of readGroups(path))
    yield group.map((values) =>
      toRow(Object.fromEntries(columns.map(({ name }) => [name, values[name] ?? null]))),
    );
}

/** The values of a file as the columns name them, one row group at a time. */
export const readValues = (path: string): AsyncGenerator<ColumnValues[]> => readGroups(path);

/**
 * Calls `onRow` with the rows that have these values, one at a time. It creates no object for other rows, and holds the columns of one row
 * group. Of a group without such a row it reads only the columns that it compares.
 */
export async function selectRows(
  path: string,
  wanted: Readonly<Record<string, string>>,
  onRow: (values: ColumnValues) => void,
): Promise<void> {
  const conditions = Object.entries(wanted);
  for await (const group of openGroups(path)) {
    const names = parquetSchema(group.metadata).children.map(({ element }) => element.name);
    const columns = new Map<string, ColumnValue[]>();
    for (const [name] of conditions)
      if (names.includes(name)) columns.set(name, await readColumn(group, name));
    const found: number[] = [];
    for (let n = 0; n < group.rowEnd - group.rowStart; n += 1)
      if (conditions.every(([name, value]) => String(columns.get(name)?.[n]) === value)) found.push(n);
    if (found.length === 0) continue;
    for (const name of names) if (!columns.has(name)) columns.set(name, await readColumn(group, name));
    for (const n of found)
      onRow(Object.fromEntries(names.map((name) => [name, columns.get(name)![n] ?? null])));
  }
}

export interface FileContent {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly rowsSha256: string;
}

const HASH_BYTES = 1024 * 1024;

/** Reads with one buffer: a stream would leave as much garbage as the file is large. */
async function hashFile(path: string): Promise<Pick<FileContent, 'bytes' | 'sha256'>> {
  const handle = await open(path, 'r');
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(HASH_BYTES);
    for (let bytes = 0; ; ) {
      const { bytesRead } = await handle.read(buffer, 0, HASH_BYTES, bytes);
      if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
      hash.update(buffer.subarray(0, bytesRead));
      bytes += bytesRead;
    }
  } finally {
    await handle.close();
  }
}

/** Reads a whole file, and returns what its manifest should say. Calls `rest` after each row group. */
export async function examineFile(
  kind: ArchiveKind,
  path: string,
  rest?: () => Promise<void>,
): Promise<FileContent> {
  const { bytes, sha256 } = await hashFile(path);
  const digest = new ValueDigest();
  let rows = 0;
  for await (const group of openGroups(path)) {
    for (const { name, type } of formatOf(kind).columns)
      digest.add(name, type, await readColumn(group, name));
    rows += group.rowEnd - group.rowStart;
    await rest?.();
  }
  return { rows, bytes, sha256, rowsSha256: digest.finish() };
}

export interface FileToCompare {
  readonly name: string;
  readonly path: string;
  readonly expected: FileContent;
  readonly rest?: (() => Promise<void>) | undefined;
}

/** Throws if the file differs from what was written. */
export async function compareFile(
  kind: ArchiveKind,
  { name, path, expected, rest }: FileToCompare,
): Promise<void> {
  const found = await examineFile(kind, path, rest).catch((error: unknown) => {
    if (error instanceof ArchiveStoppedError) throw error;
    throw new ArchiveError(`${name} cannot be read: ${(error as Error).message}`, { cause: error });
  });
  for (const field of ['bytes', 'rows', 'sha256', 'rowsSha256'] as const)
    if (found[field] !== expected[field])
      throw new ArchiveError(
        `${name} differs from what was written: ${field} is ${found[field]}, not ${expected[field]}.`,
      );
}
