import { describe, expect, test } from 'vitest';
import { microsToUnixMs, PgOutputDecoder } from './pgoutput.ts';

// As PostgreSQL 18 sent them: one transaction with a row in `t`, one in `other`, and a message.
const BEGIN = '42000000000252be480003034d1b96fb9d000002f9';
const RELATION_T =
  '52000042087075626c69630074006400030069640000000017ffffffff006e6f74650000000019ffffffff006269670000000019ffffffff';
const INSERT_T = '49000042084e00037400000001317400000004c3b6c39f6e';
const RELATION_OTHER = '520000420d7075626c6963006f74686572006400010069640000000017ffffffff';
const INSERT_OTHER = '490000420d4e0001740000000132';
const MESSAGE = '4d01000000000252be48706f7374686f726e00000000157b2274797065223a2261222c2264617461223a317d';
const COMMIT = '4300000000000252be48000000000252be780003034d1b96fb9d';

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const newDecoder = () => new PgOutputDecoder((schema, table) => schema === 'public' && table === 't');

describe('OUT-3: messages of pgoutput', () => {
  test('begin identifies the transaction, commit has the position to continue from', () => {
    const decoder = newDecoder();
    const begin = decoder.decode(bytes(BEGIN));
    expect(begin).toEqual({
      kind: 'begin',
      commitLsn: 0x252be48n,
      committedAtMicros: 0x0003034d1b96fb9dn,
      xid: 0x2f9,
    });
    expect(new Date(microsToUnixMs(0x0003034d1b96fb9dn)).toISOString()).toMatch(/^2026-11-15T/);
    expect(decoder.decode(bytes(COMMIT))).toEqual({ kind: 'commit', endLsn: 0x252be78n });
  });

  test('a row of the table has its columns, and NULL is null', () => {
    const decoder = newDecoder();
    expect(decoder.decode(bytes(RELATION_T)).kind).toBe('other');
    const insert = decoder.decode(bytes(INSERT_T));
    if (insert.kind !== 'insert') throw new Error(`It is ${insert.kind}.`);
    expect([...insert.values].map(([name, value]) => [name, value?.toString() ?? null])).toEqual([
      ['id', '1'],
      ['note', 'öß'],
      ['big', null],
    ]);
  });

  test('ignores rows of other tables, and of tables that were never described', () => {
    const decoder = newDecoder();
    expect(decoder.decode(bytes(INSERT_T)).kind).toBe('other');
    decoder.decode(bytes(RELATION_OTHER));
    expect(decoder.decode(bytes(INSERT_OTHER)).kind).toBe('other');
  });

  test('ignores a table after it was renamed', () => {
    const decoder = newDecoder();
    decoder.decode(bytes(RELATION_T));
    decoder.decode(bytes(RELATION_T.replace('7075626c69630074', '7075626c69630075')));
    expect(decoder.decode(bytes(INSERT_T)).kind).toBe('other');
  });

  test('a message has a prefix and content, and says whether it is transactional', () => {
    const decoder = newDecoder();
    const expected = { kind: 'message', lsn: 0x252be48n, prefix: 'posthorn' };
    const message = decoder.decode(bytes(MESSAGE));
    expect(message).toMatchObject({ ...expected, transactional: true });
    if (message.kind === 'message') expect(message.content.toString()).toBe('{"type":"a","data":1}');
    expect(decoder.decode(bytes(MESSAGE.replace(/^4d01/, '4d00')))).toMatchObject({ transactional: false });
  });

  test('ignores unknown messages, and throws if a message ends too early', () => {
    const decoder = newDecoder();
    for (const letter of ['U', 'D', 'T', 'Y', 'O'])
      expect(decoder.decode(Buffer.from(letter)).kind).toBe('other');
    decoder.decode(bytes(RELATION_T));
    for (const hex of [BEGIN, INSERT_T.slice(0, -2), MESSAGE]) {
      expect(() => decoder.decode(bytes(hex).subarray(0, -1)), hex).toThrow(RangeError);
    }
  });
});
