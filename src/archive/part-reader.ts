/** Reads Parquet files of an archive, one row group at a time. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { zstdDecompressSync } from 'node:zlib';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { ArchiveError, type ArchiveKind } from '../domain/archive.ts';
import type { RowsByKind } from '../ports/archive-rows.ts';
import { type ColumnValue, type ColumnValues, formatOf } from './columns.ts';
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

/** The values of each row of a row group. */
async function* readGroups(path: string): AsyncGenerator<ColumnValues[]> {
  const handle = await open(path, 'r');
  try {
    const file = await toAsyncBuffer(handle);
    const metadata: FileMetaData = await parquetMetadataAsync(file);
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      yield (await parquetReadObjects({
        file,
        metadata,
        rowStart,
        rowEnd,
        utf8: false,
        parsers: PARSERS,
        compressors: DECOMPRESSORS,
      })) as ColumnValues[];
      rowStart = rowEnd;
    }
  } finally {
    await handle.close();
  }
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

export interface FileContent {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly rowsSha256: string;
}

/** Reads a whole file, and returns what its manifest should say. */
export async function examineFile(kind: ArchiveKind, path: string): Promise<FileContent> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  const digest = new ValueDigest();
  let rows = 0;
  for await (const group of readGroups(path)) {
    for (const { name, type } of formatOf(kind).columns)
      digest.add(
        name,
        type,
        group.map((values) => values[name] as ColumnValue | undefined),
      );
    rows += group.length;
  }
  return { rows, bytes, sha256: hash.digest('hex'), rowsSha256: digest.finish() };
}

/** Throws if the file differs from what was written. */
export async function compareFile(
  kind: ArchiveKind,
  name: string,
  path: string,
  expected: FileContent,
): Promise<void> {
  const found = await examineFile(kind, path).catch((error: unknown) => {
    throw new ArchiveError(`${name} cannot be read: ${(error as Error).message}`, { cause: error });
  });
  for (const field of ['bytes', 'rows', 'sha256', 'rowsSha256'] as const)
    if (found[field] !== expected[field])
      throw new ArchiveError(
        `${name} differs from what was written: ${field} is ${found[field]}, not ${expected[field]}.`,
      );
}
