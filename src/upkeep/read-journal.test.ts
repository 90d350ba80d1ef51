import { expect, test } from 'vitest';
import { newId } from '../domain/ids.ts';
import { journalOfAccepted } from '../postgres/queries/stats-journal.ts';
import { readJournal } from './read-journal.ts';

const ID = newId(0);
const accepted = journalOfAccepted([{ tenant: 'acme', type: 'a.b' }]);

test('reads every kind of row that this version writes', () => {
  const entries = [
    accepted,
    JSON.stringify({ attempts: [[ID, 'acme', 'a.b', [0, 1, 12, 13, 2, 2, -1, -1]]] }),
    JSON.stringify({ dead: [[ID, 'acme', 'a.b', 3]] }),
  ];
  const { readable, unreadable } = readJournal(entries.map((counts, at) => ({ at, counts })));
  expect(unreadable).toEqual([]);
  expect(readable).toEqual(entries.map((counts, at) => ({ at, entry: JSON.parse(counts) })));
});

test.each([
  ['JSON that is cut off', '{"accepted":[["acme","a.b"'],
  ['null', 'null'],
  ['a list that is not a list', '{"accepted":3}'],
  ['a count that is missing', '{"accepted":[["acme","a.b"]]}'],
  ['five numbers per attempt', `{"attempts":[["${ID}","acme","a.b",[0,1,2,3,4]]]}`],
  ['an unknown verdict', `{"attempts":[["${ID}","acme","a.b",[3,1,0,0]]]}`],
  ['a finer histogram', `{"attempts":[["${ID}","acme","a.b",[0,1,2000,0]]]}`],
])('sets a row aside, with the reason, if it has %s, and reads its neighbours', (_, counts) => {
  const good = { at: 1, counts: accepted };
  const { readable, unreadable } = readJournal([good, { at: 5, counts }, good]);
  expect(readable).toHaveLength(2);
  expect(unreadable).toEqual([{ at: 5, counts, problem: expect.stringMatching(/./) }]);
});
