/**
 * Limits the size of the batches of an answer when they are decompressed. The client decompresses in memory without a limit,
 * and one megabyte can become gigabytes. That would crash the process, and then every later owner of the partition.
 */
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { compressionsAlgorithms } from '@platformatic/kafka';

/** The most bytes that the compressed batches of one answer may have together when they are decompressed. */
export const MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024;

/**
 * The most records and headers that the compressed batches of one answer may have together. Each takes a few hundred
 * bytes of memory.
 */
const MAX_PARTS = 1_000_000;

export class DecompressionLimitError extends Error {
  override readonly name = 'DecompressionLimitError';

  constructor(maxBytes: number) {
    super(
      `Compressed records become larger than ${maxBytes} bytes, or more than ${MAX_PARTS} records and headers.`,
    );
  }
}

type Decompress = (data: Buffer) => Buffer;
type Input = Parameters<(typeof compressionsAlgorithms)['gzip']['decompressSync']>[0];

let isInstalled = false;

/** Replaces the decompressors of the client in this process. Further calls do nothing. */
export function limitDecompression(maxBytes = MAX_DECOMPRESSED_BYTES): void {
  if (isInstalled) return;
  isInstalled = true;
  let room = maxBytes;
  let parts = 0;
  const reset = () => {
    room = maxBytes;
    parts = 0;
  };
  const withinRoom = (decompress: (data: Buffer, room: number) => Buffer) => (input: Input) => {
    // The client parses an answer without awaiting anything, so the first microtask runs after the whole answer was parsed.
    if (room === maxBytes) queueMicrotask(reset);
    try {
      const output = decompress(Buffer.isBuffer(input) ? input : input.buffer, room);
      room -= output.length;
      parts += countParts(output);
      if (parts > MAX_PARTS) throw new DecompressionLimitError(maxBytes);
      return output;
    } catch (error) {
      throw (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE'
        ? new DecompressionLimitError(maxBytes)
        : error;
    }
  };
  const checked = (original: Decompress, sizeOf: (data: Buffer) => number) =>
    withinRoom((data, left) => {
      if (sizeOf(data) > left) throw new DecompressionLimitError(maxBytes);
      return original(data);
    });
  const { gzip, snappy, lz4, zstd } = compressionsAlgorithms;
  const replace = (algorithm: object, decompressSync: (input: Input) => Buffer) =>
    Object.assign(algorithm, { decompressSync });
  replace(
    gzip,
    withinRoom((data, left) => gunzipSync(data, { maxOutputLength: Math.max(1, left) })),
  );
  replace(
    zstd,
    withinRoom((data, left) => zstdDecompressSync(data, { maxOutputLength: Math.max(1, left) })),
  );
  replace(snappy, checked(snappy.decompressSync, snappySize));
  replace(lz4, checked(lz4.decompressSync, lz4SizeLimit));
}

/** True if the answer was refused because of its decompressed size. The client wraps errors. */
export function isDecompressionLimit(error: unknown): boolean {
  if (error instanceof DecompressionLimitError) return true;
  if (!(error instanceof Error)) return false;
  const { errors, cause } = error as { errors?: unknown[]; cause?: unknown };
  return [...(errors ?? []), cause].some(isDecompressionLimit);
}

/** Counts the records and headers of a decompressed batch, up to the limit, without copying them. */
export function countParts(data: Buffer): number {
  let at = 0;
  /** Reads a signed number in zigzag form. */
  const readNumber = (): number => {
    let value = 0;
    for (let factor = 1; at < data.length; factor *= 128) {
      const byte = data[at]!;
      at += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  const skipBytes = (): void => {
    const length = readNumber();
    at += Math.max(0, length);
  };
  let count = 0;
  while (at < data.length && count <= MAX_PARTS) {
    // The length of the record is not usable: the client does not check it against the parts of the record.
    readNumber();
    // Skips the attributes, then the deltas of time and offset.
    at += 1;
    readNumber();
    readNumber();
    skipBytes();
    skipBytes();
    const headers = Math.max(0, readNumber());
    count += 1 + headers;
    for (let n = 0; n < 2 * headers && at < data.length; n += 1) skipBytes();
  }
  return count;
}

const XERIAL_HEADER = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const XERIAL_HEADER_LENGTH = 16;

/** Returns the size that the data announces. The decompressor refuses data that differs from it. */
export function snappySize(data: Buffer): number {
  if (!data.subarray(0, XERIAL_HEADER.length).equals(XERIAL_HEADER)) return readVarint(data);
  let size = 0;
  let at = XERIAL_HEADER_LENGTH;
  while (at + 4 <= data.length) {
    const length = data.readUInt32BE(at);
    size += readVarint(data.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return size;
}

function readVarint(data: Buffer): number {
  let value = 0;
  for (let n = 0; n < 5 && n < data.length; n += 1) {
    value += (data[n]! & 0x7f) * 2 ** (7 * n);
    if (data[n]! < 0x80) break;
  }
  return value;
}

const LZ4_MAGIC = 0x184d2204;
/** The highest compression ratio of LZ4. */
const LZ4_MAX_RATIO = 255;

/** Returns how large LZ4 frames can become at most: the sum over their blocks. */
export function lz4SizeLimit(data: Buffer): number {
  if (data.length < 7 || data.readUInt32LE(0) !== LZ4_MAGIC) return data.length * LZ4_MAX_RATIO;
  const flags = data[4]!;
  // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
  const blockSize = 2 ** (8 + 2 * ((data[5]! >> 4) & 7));
  const checksum = (flags & 0x10) === 0 ? 0 : 4;
  let at = 7 + ((flags & 0x08) === 0 ? 0 : 8) + ((flags & 0x01) === 0 ? 0 : 4);
  let size = 0;
  while (at + 4 <= data.length) {
    const head = data.readUInt32LE(at);
    const length = head & 0x7fffffff;
    at += 4;
    if (length === 0) return size + data.subarray(at + ((flags & 0x04) === 0 ? 0 : 4)).length * LZ4_MAX_RATIO;
    size += head > 0x7fffffff ? length : Math.min(blockSize, length * LZ4_MAX_RATIO);
    at += length + checksum;
  }
  return size;
}
