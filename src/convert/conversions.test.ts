import { describe, expect, it } from 'vitest';
import { anEndpoint, anEvent } from '../../test/support/attempts.ts';
import { readConversionNote } from '../domain/conversion-header.ts';
import { newEventId } from '../domain/ids.ts';
import { findPath, type TypeVersion } from '../domain/version-pins.ts';
import { conversionName, type StoredConversion } from '../ports/conversion-store.ts';
import type { ConversionResult } from '../ports/stages.ts';
import { Conversions } from './conversions.ts';
import type { PoolAnswer } from './converter-pool.ts';

const VERSIONS = ['v1', 'v2', 'v3', 'v4'].map(
  (name): TypeVersion => ({ name, status: 'active', createdAt: 0, deprecatedAt: null, sunsetAt: null }),
);
const STEPS = [
  { from: 'v4', to: 'v3' },
  { from: 'v3', to: 'v2' },
  { from: 'v2', to: 'v1' },
];
const FIRST = { id: newEventId(1), attempts: 0, attemptsBeforeReplay: 0 };

function create({ answer, fails = false }: { answer?: PoolAnswer; fails?: boolean } = {}) {
  const stored = new Map<string, StoredConversion>();
  const sent = new Map<string, StoredConversion>();
  const counts = { runs: 0, lookups: 0 };
  const conversions = new Conversions({
    versions: { versionsOf: () => VERSIONS, deprecationOf: () => null, hasDeprecations: false },
    store: {
      async keep(conversions) {
        if (fails) throw new Error('no answer');
        for (const each of conversions)
          if (!stored.has(conversionName(each))) stored.set(conversionName(each), each);
        return new Map(
          conversions.map((each) => [conversionName(each), stored.get(conversionName(each))!.data]),
        );
      },
      async find(key) {
        return stored.get(conversionName(key))?.data ?? null;
      },
      async findSent(queries) {
        if (fails) throw new Error('no answer');
        counts.lookups += 1;
        return new Map(
          queries.flatMap(({ deliveryId }) =>
            sent.has(deliveryId) ? [[deliveryId, sent.get(deliveryId)!]] : [],
          ),
        );
      },
    },
    converters: {
      hash: 'aa',
      findPath: (_type, from, to) => findPath(STEPS, from, to),
      run(_request, done) {
        counts.runs += 1;
        const run = counts.runs;
        setImmediate(() => done(answer ?? { kind: 'converted', data: Buffer.from(`"run ${run}"`) }));
      },
    },
    now: () => 0,
    onProblem: () => {},
  });
  const convert = (apiVersion: string | null, event = EVENT, delivery = FIRST): Promise<ConversionResult> =>
    new Promise((resolve) =>
      conversions.convert(
        { endpoint: anEndpoint('https://example.com/', { apiVersion }), event, delivery },
        resolve,
      ),
    );
  return { conversions, convert, counts, stored, sent };
}

const EVENT = { ...anEvent(), schemaVersion: 'v4' };
const dataOf = (result: ConversionResult) =>
  result.kind === 'ready' ? result.event.data.toString() : result.kind;

describe('VER-2: conversions', () => {
  it('an event for a thousand endpoints with three pins is converted three times', async () => {
    const { convert, counts, stored } = create();
    const pins = Array.from({ length: 1000 }, (_, index) => ['v1', 'v2', 'v3'][index % 3]!);
    const results = await Promise.all(pins.map((pin) => convert(pin)));
    expect(counts.runs).toBe(3);
    expect(stored.size).toBe(3);
    expect(new Set(results.map(dataOf)).size).toBe(3);
    // Later deliveries find it in the cache.
    expect(dataOf(await convert('v1'))).toBe(dataOf(results[0]!));
    expect(counts.runs).toBe(3);
  });

  it('without a pin, or if the event has the pinned version, nothing is looked up or converted, and no header is added', async () => {
    const { conversions, convert, counts } = create();
    expect(conversions.needsConversion(anEndpoint('https://example.com/'))).toBe(false);
    expect(await convert(null)).toEqual({ kind: 'ready', event: EVENT, headers: null });
    expect(await convert('v4')).toEqual({ kind: 'ready', event: EVENT, headers: null });
    expect(counts).toEqual({ runs: 0, lookups: 0 });
  });

  it('a retry sends what was sent before, unless the pin has changed meanwhile', async () => {
    const { convert, counts, sent } = create();
    const retry = { ...FIRST, attempts: 1 };
    sent.set(FIRST.id, { eventId: EVENT.id, version: 'v2', converter: '0d', data: Buffer.from('"before"') });
    const result = await convert('v2', EVENT, retry);
    expect(dataOf(result)).toBe('"before"');
    if (result.kind === 'ready')
      expect(readConversionNote(result.headers!)).toMatchObject({ converter: '0d', to: 'v2' });
    expect(counts.runs).toBe(0);
    expect(dataOf(await convert('v1', EVENT, retry))).toBe('"run 1"');
    // A replay ignores the attempts before it.
    expect(dataOf(await convert('v2', EVENT, { ...FIRST, attempts: 1, attemptsBeforeReplay: 1 }))).toBe(
      '"run 2"',
    );
  });

  it('sends the stored result, even if another worker stored it', async () => {
    const { convert, stored } = create();
    const theirs = { eventId: EVENT.id, version: 'v1', converter: 'aa', data: Buffer.from('"theirs"') };
    stored.set(conversionName(theirs), theirs);
    expect(dataOf(await convert('v1'))).toBe('"theirs"');
  });

  it('says why it could not convert', async () => {
    expect(await create({ answer: { kind: 'failed', message: 'x' } }).convert('v1')).toEqual({
      kind: 'failed',
      message: 'x',
    });
    expect(await create({ answer: { kind: 'busy' } }).convert('v1')).toEqual({ kind: 'busy' });
    const broken = create({ fails: true });
    expect(await broken.convert('v1')).toEqual({ kind: 'busy' });
    expect(await broken.convert('v1', EVENT, { ...FIRST, attempts: 1 })).toEqual({ kind: 'busy' });
    const { convert } = create();
    const upwards = await convert('v4', { ...EVENT, schemaVersion: 'v1' });
    expect(upwards.kind === 'ready' && readConversionNote(upwards.headers!)).toEqual({
      status: 'as_published',
      reason: 'no_converter',
    });
  });

  it('a result that is too large for the cache is read from the store, not converted for each delivery', async () => {
    const data = Buffer.alloc(2 * 1024 * 1024);
    const { convert, counts, stored } = create({ answer: { kind: 'converted', data } });
    for (let n = 0; n < 3; n += 1) await convert('v1');
    expect(counts.runs).toBe(1);
    stored.clear();
    expect((await convert('v1')).kind).toBe('ready');
    expect(counts.runs).toBe(2);
  });

  it('an error of one delivery stops neither the others nor later conversions', async () => {
    const { conversions, convert, sent } = create();
    const throwing = (delivery: typeof FIRST) =>
      conversions.convert(
        { endpoint: anEndpoint('https://example.com/', { apiVersion: 'v1' }), event: EVENT, delivery },
        () => {
          throw new Error('not this one');
        },
      );
    const retry = { ...FIRST, attempts: 1 };
    throwing(FIRST);
    expect(dataOf(await convert('v1'))).toBe('"run 1"');
    sent.set(FIRST.id, { eventId: EVENT.id, version: 'v1', converter: '0d', data: Buffer.from('"before"') });
    throwing(retry);
    expect(dataOf(await convert('v1', EVENT, retry))).toBe('"before"');
    expect(dataOf(await convert('v1', EVENT, retry))).toBe('"before"');
    expect(dataOf(await convert('v2'))).toBe('"run 2"');
  });

  it('forgets an event whose payload was expunged', async () => {
    const { conversions, convert, counts } = create();
    await convert('v1');
    conversions.expunge(EVENT.id);
    await convert('v1');
    expect(counts.runs).toBe(2);
  });
});
