import { randomBytes } from 'node:crypto';
import { compressionsAlgorithms, createRecord } from '@platformatic/kafka';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  countParts,
  DecompressionLimitError,
  isDecompressionLimit,
  limitDecompression,
  lz4SizeLimit,
  MAX_DECOMPRESSED_BYTES,
  snappySize,
} from './decompression-limit.ts';

beforeAll(() => limitDecompression());

const ALGORITHMS = ['gzip', 'snappy', 'lz4', 'zstd'] as const;
const recordOf = (value: Buffer, headers = 0): Buffer =>
  createRecord(
    {
      topic: 't',
      key: Buffer.alloc(200),
      value,
      headers: new Map(Array.from({ length: headers }, (_, n) => [Buffer.from(`h${n}`), Buffer.from('v')])),
      timestamp: 5n,
    },
    3,
    10n,
  ).buffer;
const nextAnswer = () => new Promise((resolve) => setImmediate(resolve));

describe.each(ALGORITHMS)('SCL-2: %s', (name) => {
  const { compressSync } = compressionsAlgorithms[name];
  // Looked up late, because it is replaced before the tests.
  const decompressSync = (data: Buffer) => compressionsAlgorithms[name].decompressSync(data);

  test('decompresses batches of a usual size', () => {
    const values = [Buffer.from('{"n":1}'), randomBytes(300_000), Buffer.alloc(5_000_000, 'abc')];
    for (const data of values.map((value) => recordOf(value)))
      expect(decompressSync(compressSync(data)).equals(data)).toBe(true);
  });

  test('refuses a batch that becomes too large', async () => {
    await nextAnswer();
    const bomb = compressSync(recordOf(Buffer.alloc(MAX_DECOMPRESSED_BYTES)));
    expect(() => decompressSync(bomb)).toThrow(DecompressionLimitError);
  });

  test('refuses batches of one answer that become too large together, and accepts each alone', async () => {
    await nextAnswer();
    const data = recordOf(Buffer.alloc(MAX_DECOMPRESSED_BYTES / 2));
    const half = compressSync(data);
    decompressSync(half);
    expect(() => decompressSync(half)).toThrow(DecompressionLimitError);
    await nextAnswer();
    expect(decompressSync(half)).toHaveLength(data.length);
  });
});

test('SCL-2: the size of snappy data is known before it is decompressed, in the plain format and in that of Java clients', () => {
  const chunk = compressionsAlgorithms.snappy.compressSync(Buffer.alloc(100_000));
  expect(snappySize(chunk)).toBe(100_000);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(chunk.length);
  const header = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
  expect(snappySize(Buffer.concat([header, length, chunk, length, chunk]))).toBe(200_000);
});

test('SCL-2: the limit of LZ4 data is little more than its size', () => {
  const size = 10_000_000;
  const limit = lz4SizeLimit(compressionsAlgorithms.lz4.compressSync(Buffer.alloc(size)));
  expect(limit).toBeGreaterThanOrEqual(size);
  expect(limit).toBeLessThanOrEqual(size + 4 * 1024 * 1024);
});

test('SCL-2: the limit is recognised in errors that the client wraps', () => {
  const limit = new DecompressionLimitError(1);
  expect(isDecompressionLimit(new Error('failed', { cause: new AggregateError([limit]) }))).toBe(true);
  expect(isDecompressionLimit(new Error('failed'))).toBe(false);
});

test('SCL-2: records and headers are counted', () => {
  expect(countParts(Buffer.concat([0, 2, 300].map((headers) => recordOf(Buffer.from('{}'), headers))))).toBe(
    305,
  );
});

test('SCL-2: refuses a batch of too many small records, which take far more memory than bytes', async () => {
  await nextAnswer();
  const { gzip } = compressionsAlgorithms;
  const record = Buffer.from([12, 0, 0, 0, 1, 1, 0]);
  const many = gzip.compressSync(Buffer.alloc(1_000_001 * record.length, record));
  expect(() => gzip.decompressSync(many)).toThrow(DecompressionLimitError);
});
