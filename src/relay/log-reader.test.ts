import { describe, expect, test } from 'vitest';
import { LogReader } from './log-reader.ts';

const COMMITTED_AT_MICROS = 800_000_000_000_000n; // since 2000
const OUTBOX = { schema: 'public', name: 'posthorn_outbox' };

const uint = (value: number | bigint, size: 1 | 2 | 4 | 8): Buffer => {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64BE(BigInt(value));
  return buffer.subarray(8 - size);
};
const text = (value: string): Buffer => Buffer.from(`${value}\0`);
const sized = (value: string | Buffer): Buffer =>
  Buffer.concat([uint(Buffer.byteLength(value), 4), Buffer.from(value)]);

const begin = (lsn: number): Buffer =>
  Buffer.concat([Buffer.from('B'), uint(lsn, 8), uint(COMMITTED_AT_MICROS, 8), uint(7, 4)]);
const commit = (endLsn: number): Buffer =>
  Buffer.concat([Buffer.from('C'), uint(0, 1), uint(0, 8), uint(endLsn, 8), uint(0, 8)]);
const message = (content: string, { transactional = true, prefix = 'posthorn' } = {}): Buffer =>
  Buffer.concat([Buffer.from('M'), uint(transactional ? 1 : 0, 1), uint(5, 8), text(prefix), sized(content)]);
const relation = (columns: string[]): Buffer =>
  Buffer.concat([
    Buffer.from('R'),
    uint(1, 4),
    text('public'),
    text('posthorn_outbox'),
    Buffer.from('d'),
    uint(columns.length, 2),
    ...columns.flatMap((name) => [uint(0, 1), text(name), uint(25, 4), uint(0, 4)]),
  ]);
const insert = (values: (string | null)[]): Buffer =>
  Buffer.concat([
    Buffer.from('I'),
    uint(1, 4),
    Buffer.from('N'),
    uint(values.length, 2),
    ...values.map((value) =>
      value === null ? Buffer.from('n') : Buffer.concat([Buffer.from('t'), sized(value)]),
    ),
  ]);

const newReader = () => new LogReader({ table: OUTBOX, source: 'test', maxEventBytes: 1000 });
const feed = (reader: LogReader, ...messages: Buffer[]): void => {
  for (const each of messages) reader.read(each);
};

describe('OUT-3: the log reader', () => {
  test('confirms nothing after a change that it could not read, so that the source sends it again', () => {
    const reader = newReader();
    feed(reader, begin(10), message('1'), commit(20), relation(['id', 'data']), begin(30));
    reader.take(1, 1e6);
    expect(() => reader.read(insert([null, '2']))).toThrow();
    feed(reader, commit(40));
    reader.onCaughtUp(50n);
    expect(reader.finish(1)).toBe(20n);
  });

  test('confirms a position when every event before it is finished, and not earlier', () => {
    const reader = newReader();
    feed(reader, begin(10), message('1'), message('2'), commit(20), begin(30), message('3'), commit(40));
    expect(reader.finish(0)).toBeNull();
    expect(reader.take(1, 1e6).map(({ body }) => body.toString())).toEqual(['1']);
    expect(reader.finish(1)).toBeNull();
    expect(reader.take(2, 1e6)).toHaveLength(2);
    expect(reader.finish(1)).toBe(20n);
    expect(reader.oldestCommittedAt).not.toBeNull();
    expect(reader.finish(1)).toBe(40n);
    expect(reader.oldestCommittedAt).toBeNull();
  });

  test('advances with keepalives, but never past an unfinished event or into a transaction', () => {
    const reader = newReader();
    reader.onCaughtUp(5n);
    expect(reader.finish(0)).toBe(5n);
    feed(reader, begin(10));
    reader.onCaughtUp(11n);
    expect(reader.finish(0)).toBeNull();
    feed(reader, message('1'), commit(20));
    reader.onCaughtUp(50n);
    expect(reader.finish(0)).toBeNull();
    reader.take(1, 1e6);
    expect(reader.finish(1)).toBe(50n);
  });

  test('makes the id of a message from its position: the same when read again, and unique', () => {
    const read = (): string[] => {
      const reader = newReader();
      feed(reader, begin(10), message('1'), message('1'), commit(20), begin(30), message('1'), commit(40));
      return reader.take(10, 1e6).map(({ id }) => id);
    };
    const ids = read();
    expect(new Set(ids).size).toBe(3);
    expect(read()).toEqual(ids);
  });

  test('makes a body of a row that keeps the text of data', () => {
    const reader = newReader();
    const columns = ['id', 'type', 'data', 'channels', 'tenant', 'created_at', 'deliver_at', 'extra'];
    feed(
      reader,
      relation(columns),
      begin(10),
      insert([
        '0190b5a0-0000-4000-8000-000000000001',
        'a.b',
        '{"n": 1.00, "n":2}',
        '{x,"y \\"z\\""}',
        null,
        '2026-11-15 10:00:00.123456+00',
        '2027-01-31 12:00:00+00',
        'ignored',
      ]),
      commit(20),
    );
    const [row] = reader.take(1, 1e6);
    expect(row).toMatchObject({
      id: '0190b5a0-0000-4000-8000-000000000001',
      createdAt: Date.parse('2026-11-15T10:00:00.123Z'),
      isRow: true,
      mayCarryId: false,
      problem: null,
    });
    expect(row!.body.toString()).toBe(
      '{"type":"a.b","channels":["x","y \\"z\\""],"deliver_at":"2027-01-31T12:00:00Z","data":{"n": 1.00, "n":2}}',
    );
  });

  test('returns what cannot be an event as a problem, without its large content', () => {
    const reader = newReader();
    const id = '0190b5a0-0000-4000-8000-000000000001';
    feed(
      reader,
      message('{}', { transactional: false }),
      relation(['id', 'data']),
      begin(10),
      insert([id, 'x'.repeat(1001)]),
      message('x'.repeat(600_000)),
      message('not ours', { prefix: 'other' }),
      commit(20),
    );
    const items = reader.take(10, 1e9);
    expect(items.map(({ problem }) => problem)).toEqual([
      expect.stringContaining('must be true'),
      expect.stringContaining('1001 bytes'),
      expect.stringContaining('600000 bytes'),
    ]);
    for (const { body } of items) expect(body.length).toBeLessThan(1000);
  });

  test('limits a batch by bytes, but always takes the first event', () => {
    const reader = newReader();
    feed(reader, begin(10), message('x'.repeat(5000)), message('1'), message('2'), commit(20));
    expect(reader.take(10, 100)).toHaveLength(1);
    expect(reader.take(10, 600)).toHaveLength(1);
    expect(reader.waitingBytes).toBeGreaterThan(0);
    expect(reader.take(10, 600)).toHaveLength(1);
    expect(reader.waitingBytes).toBe(0);
  });
});
