import { expect, test } from 'vitest';
import { newId } from '../domain/ids.ts';
import { Seal, type SealOptions } from './seal.ts';

const NOW = 1_800_000_000_000;
const KEY_ID = '0123456789ab';
const KEY = Buffer.alloc(32, 7);

const newSeal = (options: Partial<SealOptions> = {}): Seal =>
  new Seal({ id: newId(NOW), keys: new Map([[KEY_ID, KEY]]), clock: { now: () => NOW }, ...options });

test('a process opens what another one sealed, and learns who it was', () => {
  const id = newId(NOW);
  const [from, to] = [newSeal({ id }), newSeal()];
  for (const text of ['', 'x', 'payload'.repeat(10_000)]) {
    const opened = to.open(from.seal(Buffer.from(text), 'a'), 'a');
    expect({ ...opened, message: opened.message.toString() }).toEqual({ from: id, message: text });
  }
});

test('no byte of a sealed message can be changed', () => {
  const [from, to] = [newSeal(), newSeal()];
  const sealed = from.seal(Buffer.from('payload'), 'a');
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at]! ^= 0x10;
    expect(() => to.open(changed, 'a'), `byte ${at}`).toThrow(/format|key|authentic/);
    expect(() => to.open(sealed.subarray(0, at), 'a')).toThrow(/format|authentic/);
  }
  expect(to.open(sealed, 'a').message.toString()).toBe('payload');
});

test('a message is refused on another channel, a second time, after a later one, and when it is old', () => {
  let now = NOW;
  const [from, to] = [newSeal(), newSeal({ clock: { now: () => now } })];
  const [one, two, three] = ['1', '2', '3'].map((text) => from.seal(Buffer.from(text), 'a'));
  expect(() => to.open(one!, 'b')).toThrow('not authentic');
  expect(to.open(two!, 'a').message.toString()).toBe('2');
  expect(() => to.open(two!, 'a')).toThrow('repeated');
  expect(() => to.open(one!, 'a')).toThrow('repeated');
  now += 10_001;
  expect(() => to.open(three!, 'a')).toThrow('too old');
});

test('a stranger with another key is refused, and a process with a previous key is understood', () => {
  const to = newSeal();
  const stranger = newSeal({ keys: new Map([[KEY_ID, Buffer.alloc(32, 8)]]) });
  expect(() => to.open(stranger.seal(Buffer.from('x'), 'a'), 'a')).toThrow('not authentic');
  const next = newSeal({ keys: new Map([['ffffffffffff', Buffer.alloc(32, 9)]]) });
  const sealed = next.seal(Buffer.from('x'), 'a');
  expect(() => to.open(sealed, 'a')).toThrow('unknown key ffffffffffff');
  const both = newSeal({
    keys: new Map([
      [KEY_ID, KEY],
      ['ffffffffffff', Buffer.alloc(32, 9)],
    ]),
  });
  expect(both.open(sealed, 'a').message.toString()).toBe('x');
});

test('two processes, and two messages of one, are sealed differently', () => {
  const [one, other] = [newSeal(), newSeal()];
  const sealed = [one, one, other].map((seal) => seal.seal(Buffer.from('the same'), 'a').subarray(51));
  expect(new Set(sealed.map(String)).size).toBe(3);
});
