import { expect, it } from 'vitest';
import { newId } from '../domain/ids.ts';
import { uuidArray } from './uuid-array.ts';

it('writes the bytes of each id, in the form that PostgreSQL sends an array of UUIDs', () => {
  const ids = ['00112233-4455-6677-8899-aabbccddeeff', 'FFFFFFFF-0000-0000-0000-000000000001', newId(0)];
  const items = ids.map((id) => `00000010${id.replaceAll('-', '').toLowerCase()}`);
  expect(uuidArray(ids).toString('hex')).toBe(
    `000000010000000000000b86${'00000003'}00000001${items.join('')}`,
  );
  expect(uuidArray([]).toString('hex')).toBe('000000010000000000000b860000000000000001');
});

it.each(['', 'evt_1', '00112233-4455-6677-8899-aabbccddeef', '00112233-4455-6677-8899-aabbccddeefg'])(
  'refuses "%s"',
  (id) => {
    expect(() => uuidArray([newId(0), id])).toThrow(`"${id}" is not a UUID.`);
  },
);
