import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CONVERSION_HEADER, writeConversionNote } from '../../src/domain/conversion-header.ts';
import { eventIdOfDelivery, type Uuid } from '../../src/domain/ids.ts';
import {
  type ConversionKey,
  conversionName,
  type StoredConversion,
} from '../../src/ports/conversion-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newEventId } from './support/ids.ts';
import { accept, batchOf, FAILED, newSettlement, retryAt } from './support/records.ts';

const A = 'a'.repeat(32);
const B = 'b'.repeat(32);

export function describeConversionStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the conversion store in ${name}`, () => {
    let store: StoreFixture;
    let endpointId: Uuid;
    beforeAll(async () => {
      store = await createFixture();
      endpointId = await store.createEndpoint();
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    const conversionOf = (
      eventId: Uuid,
      text: string,
      key: Partial<ConversionKey> = {},
    ): StoredConversion => ({
      eventId,
      version: '2025-10-01',
      converter: A,
      ...key,
      data: Buffer.from(text),
    });
    const keep = async (...conversions: StoredConversion[]): Promise<(string | null | undefined)[]> => {
      const stored = await store.conversions.keep(conversions);
      return conversions.map((each) => {
        const data = stored.get(conversionName(each));
        return data === null ? null : data?.toString();
      });
    };
    /** Records a failed attempt that was sent with this conversion. */
    const fail = (deliveryId: Uuid, attemptsBefore: number, sent: StoredConversion | null) => {
      const note = sent && {
        status: 'converted' as const,
        from: 'v9',
        to: sent.version,
        converter: sent.converter,
      };
      const requestHeaders = note === null ? {} : { [CONVERSION_HEADER]: writeConversionNote(note) };
      const outcome = { ...FAILED, startedAt: Date.now(), requestHeaders };
      const parts = { attemptsBefore, outcome };
      return store.queue.settle(
        batchOf([newSettlement(deliveryId, endpointId, retryAt(Date.now() + 60_000), parts)]),
      );
    };
    const findSent = async (deliveryId: Uuid, afterAttempt = 0) =>
      (await store.conversions.findSent([{ deliveryId, afterAttempt }])).get(deliveryId);

    it('VER-2: stores a result once per event, version and converter, and the first one wins', async () => {
      const eventId = eventIdOfDelivery(await accept(store, endpointId));
      const first = conversionOf(eventId, '{"n":1}');
      expect(await keep(first)).toEqual(['{"n":1}']);
      expect(await keep(conversionOf(eventId, '{"n":2}'))).toEqual(['{"n":1}']);
      expect((await store.conversions.find(first))?.toString()).toBe('{"n":1}');
      expect(await store.conversions.find({ ...first, version: 'v7' })).toBeNull();
      const other = conversionOf(eventId, '{"n":3}', { version: 'v1' });
      const later = conversionOf(eventId, '{"n":4}', { converter: B });
      expect(await keep(other, later, conversionOf(eventId, '[]'))).toEqual([
        '{"n":3}',
        '{"n":4}',
        '{"n":1}',
      ]);
    });

    it('VER-2: of two processes that store at the same time, both get the same bytes', async () => {
      const eventId = eventIdOfDelivery(await accept(store, endpointId));
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) => keep(conversionOf(eventId, String(n)))),
      );
      expect(new Set(answers.flat()).size).toBe(1);
    });

    it('VER-2: a call that is repeated after a lost answer returns what the first one stored', async () => {
      const eventId = eventIdOfDelivery(await accept(store, endpointId));
      const first = conversionOf(eventId, '1');
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.conversions.keep([first])).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await keep(conversionOf(eventId, '2'))).toEqual(['1']);
    });

    it('VER-2: stores nothing for an event without a payload', async () => {
      const eventId = eventIdOfDelivery(await accept(store, endpointId));
      await keep(conversionOf(eventId, '1'));
      await store.expunge(eventId);
      expect(await keep(conversionOf(eventId, '2'), conversionOf(newEventId(), '3'))).toEqual([null, null]);
    });

    it('VER-2: finds what the latest attempt since the last replay was sent with', async () => {
      const deliveryId = await accept(store, endpointId);
      const eventId = eventIdOfDelivery(deliveryId);
      const [first, second] = [conversionOf(eventId, '1'), conversionOf(eventId, '2', { converter: B })];
      await keep(first, second);
      expect(await findSent(deliveryId)).toBeUndefined();
      await fail(deliveryId, 0, first);
      expect(await findSent(deliveryId)).toEqual(first);
      await fail(deliveryId, 1, second);
      expect(await findSent(deliveryId)).toEqual(second);
      expect(await findSent(deliveryId, 1)).toEqual(second);
      expect(await findSent(deliveryId, 2)).toBeUndefined();
      await fail(deliveryId, 2, null);
      expect(await findSent(deliveryId)).toEqual(second);
    });

    it('VER-2: finds nothing that was never stored, or not for this delivery', async () => {
      const deliveryId = await accept(store, endpointId);
      const other = await accept(store, endpointId);
      const missing = conversionOf(eventIdOfDelivery(deliveryId), '1', { version: 'v7' });
      await fail(deliveryId, 0, missing);
      const queries = [deliveryId, other].map((id) => ({ deliveryId: id, afterAttempt: 0 }));
      expect((await store.conversions.findSent(queries)).size).toBe(0);
    });
  });
}
