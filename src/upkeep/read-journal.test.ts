import { expect, test } from 'vitest';
import { newId } from '../domain/ids.ts';
import { journalOfAccepted } from '../postgres/queries/stats-journal.ts';
import { readJournal } from './read-journal.ts';

const ID = newId(0);
const unreadableOf = (counts: unknown, at = 5) =>
  readJournal([{ at, counts: typeof counts === 'string' ? counts : JSON.stringify(counts) }]).unreadable;

test('what is written is read', () => {
  const entries = [
    journalOfAccepted([{ tenant: 'acme', type: 'a.b' }]),
    JSON.stringify({ attempts: [[ID, 'acme', 'a.b', [0, 1, 12, 13, 2, 2, -1, -1]]] }),
    JSON.stringify({ dead: [[ID, 'acme', 'a.b', 3]] }),
  ];
  const { rows, unreadable } = readJournal(entries.map((counts, at) => ({ at, counts })));
  expect(unreadable).toEqual([]);
  expect(rows).toEqual(entries.map((counts, at) => ({ at, counts: JSON.parse(counts) })));
});

test.each([
  ['cut off', '{"accepted":[["acme","a.b"'],
  ['empty', ''],
  ['no object', 'null'],
  ['no list', { accepted: 3 }],
  ['no number', { accepted: [['acme', 'a.b', 'one']] }],
  ['more than figures can hold', { accepted: [['acme', 'a.b', 3e9]] }],
  ['a name that no database holds', { accepted: [['acme', 'a\0b', 1]] }],
  ['no endpoint', { dead: [['ep_1', 'acme', 'a.b', 1]] }],
  ['something missing', { dead: [[ID, 'acme', 3]] }],
  ['half an attempt', { attempts: [[ID, 'acme', 'a.b', [0, 1]]] }],
  ['a verdict of a later version', { attempts: [[ID, 'acme', 'a.b', [3, 1, 0, 0]]] }],
  ['a bucket that would take all memory', { attempts: [[ID, 'acme', 'a.b', [0, 1, 2e9, 0]]] }],
])('what cannot be added up is told apart: %s', (_, counts) => {
  expect(unreadableOf(counts)).toMatchObject([{ at: 5, problem: expect.stringMatching(/./) }]);
});

test('a row without a time', () => {
  expect(unreadableOf({}, Number.POSITIVE_INFINITY)).toMatchObject([{ problem: 'has no time' }]);
});

test('its neighbours are read all the same', () => {
  const good = { at: 1, counts: journalOfAccepted([{ tenant: 'acme', type: 'a.b' }]) };
  const { rows, unreadable } = readJournal([good, { at: 2, counts: '{' }, good]);
  expect([rows.length, unreadable.length]).toEqual([2, 1]);
});
