/** Writes one Parquet file. It holds one row group in memory, whatever the size of the file. */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, fdatasyncSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { constants, zstdCompressSync } from 'node:zlib';
import type { SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { ARCHIVE_SCHEMA_VERSION, type ArchiveKind } from '../domain/archive.ts';
import type { Uuid } from '../domain/ids.ts';
import type { RowsByKind } from '../ports/archive-rows.ts';
import { type Column, type ColumnType, formatOf, type KindFormat } from './columns.ts';
import { ValueDigest } from './value-digest.ts';

export interface WrittenFile {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly rowsSha256: string;
  readonly minId: Uuid | null;
  readonly maxId: Uuid | null;
  /** Null: too many to list. */
  readonly tenants: readonly string[] | null;
}

/** Readers decode a whole row group at once. */
const GROUP_ROWS = 10_000;
const GROUP_BYTES = 4 * 1024 * 1024;
const PART_ROWS = 1_000_000;
const PART_BYTES = 512 * 1024 * 1024;
const MAX_TENANTS = 1_000;
const FLUSH_BYTES = 1024 * 1024;
/**
 * Sync after this many bytes. Syncing a whole file at once would delay the commits of a database on the same disk.
 */
const SYNC_BYTES = 8 * 1024 * 1024;
const ZSTD_LEVEL = 3;

const TYPES: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  string: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  int: { type: 'INT32' },
  boolean: { type: 'BOOLEAN' },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  bytes: { type: 'BYTE_ARRAY' },
};

const compress = (input: Uint8Array): Uint8Array =>
  zstdCompressSync(input, { params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } });

export class PartWriter<K extends ArchiveKind> {
  readonly #format: KindFormat<RowsByKind[K]>;
  readonly #file: HashingFile;
  readonly #parquet: ParquetWriter;
  readonly #digest = new ValueDigest();
  readonly #tenants = new Set<string>();
  #group: RowsByKind[K][] = [];
  #groupBytes = 0;
  #rows = 0;
  #rawBytes = 0;
  #minId: Uuid | null = null;
  #maxId: Uuid | null = null;

  /** Creates the file, or replaces it. */
  constructor(kind: K, path: string) {
    this.#format = formatOf(kind);
    this.#file = new HashingFile(path);
    this.#parquet = new ParquetWriter({
      writer: this.#file,
      schema: schemaOf(this.#format.columns as readonly Column<unknown>[]),
      codec: 'ZSTD',
      compressors: { ZSTD: compress },
      kvMetadata: [
        { key: 'posthorn.schema_version', value: String(ARCHIVE_SCHEMA_VERSION) },
        { key: 'posthorn.kind', value: kind },
      ],
    });
  }

  get rows(): number {
    return this.#rows;
  }

  /** True: start another file, unless the next row has the same key as the last one. */
  get isFull(): boolean {
    return this.#rows >= PART_ROWS || this.#rawBytes >= PART_BYTES;
  }

  get lastKey(): Uuid | null {
    return this.#maxId;
  }

  add(row: RowsByKind[K]): void {
    const { keyOf, sizeOf, tenantOf } = this.#format;
    const size = sizeOf(row);
    const tenant = tenantOf(row);
    this.#group.push(row);
    this.#groupBytes += size;
    this.#rawBytes += size;
    this.#rows += 1;
    this.#minId ??= keyOf(row);
    this.#maxId = keyOf(row);
    if (tenant !== null && this.#tenants.size <= MAX_TENANTS) this.#tenants.add(tenant);
    if (this.#group.length >= GROUP_ROWS || this.#groupBytes >= GROUP_BYTES) this.#writeGroup();
  }

  /** Completes the file on the disk. */
  finish(): WrittenFile {
    this.#writeGroup();
    void this.#parquet.finish();
    return {
      rows: this.#rows,
      bytes: this.#file.offset,
      sha256: this.#file.close(),
      rowsSha256: this.#digest.finish(),
      minId: this.#minId,
      maxId: this.#maxId,
      tenants: this.#tenants.size > MAX_TENANTS ? null : [...this.#tenants].sort(),
    };
  }

  /** Closes the file without completing it. */
  abandon(): void {
    this.#file.close();
  }

  #writeGroup(): void {
    const rows = this.#group;
    if (rows.length === 0) return;
    this.#group = [];
    this.#groupBytes = 0;
    const columnData = this.#format.columns.map(({ name, type, isUnique, read }) => {
      const data = rows.map(read);
      this.#digest.add(name, type, data);
      return { name, data, ...(isUnique && { encoding: 'PLAIN' as const }) };
    });
    void this.#parquet.write({ columnData, rowGroupSize: rows.length });
  }
}

function schemaOf(columns: readonly Column<unknown>[]): SchemaElement[] {
  return [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type, isNullable }) => ({
      name,
      ...TYPES[type],
      repetition_type: isNullable ? ('OPTIONAL' as const) : ('REQUIRED' as const),
    })),
  ];
}

/** Appends to a file, and hashes what it appends. */
class HashingFile extends ByteWriter {
  readonly #descriptor: number;
  #unsyncedBytes = 0;
  readonly #hash: Hash = createHash('sha256');

  constructor(path: string) {
    super(2 * FLUSH_BYTES);
    this.#descriptor = openSync(path, 'w', 0o600);
  }

  override ensure(size: number): void {
    if (this.index > FLUSH_BYTES) this.flush();
    super.ensure(size);
  }

  flush(): void {
    const bytes = new Uint8Array(this.buffer, 0, this.index);
    this.#hash.update(bytes);
    for (let written = 0; written < bytes.length; )
      written += writeSync(this.#descriptor, bytes, written, bytes.length - written);
    this.index = 0;
    this.#unsyncedBytes += bytes.length;
    if (this.#unsyncedBytes < SYNC_BYTES) return;
    fdatasyncSync(this.#descriptor);
    this.#unsyncedBytes = 0;
  }

  override finish(): void {
    this.flush();
    fsyncSync(this.#descriptor);
  }

  close(): string {
    closeSync(this.#descriptor);
    return this.#hash.digest('hex');
  }
}
