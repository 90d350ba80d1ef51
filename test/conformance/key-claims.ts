/** Idempotency keys of events that wait in the accept log. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { ClaimHolder } from '../../src/ports/event-log.ts';
import { idempotencyKeyName } from '../../src/ports/event-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newEventId } from './support/ids.ts';
import { appendOptions, HOUR_MS, newEvent } from './support/records.ts';

export function describeKeyClaims(name: string, createFixture: CreateStoreFixture): void {
  describe(`SCL-2: claims of idempotency keys in ${name}`, () => {
    let store: StoreFixture;
    let first: Uuid;
    let second: Uuid;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(async () => {
      await store.clear();
      [first, second] = [newEventId(), newEventId()];
    });
    afterAll(() => store?.close());

    const claim = async (
      eventId: Uuid,
      { data = '{}', key = 'k', ttlMs = HOUR_MS, mayExpireKeys = true } = {},
      { claims }: Pick<StoreFixture, 'claims'> = store,
    ): Promise<ClaimHolder> => {
      const holders = await claims.claim([{ tenant: 'acme', key, eventId, fingerprint: Buffer.from(data) }], {
        idempotencyTtlMs: ttlMs,
        now: Date.now(),
        mayExpireKeys,
      });
      return holders.get(idempotencyKeyName('acme', key))!;
    };
    const storeEvent = async (id: Uuid): Promise<boolean> => {
      const event = newEvent({ id, idempotencyKey: 'k', endpointIds: [await store.createEndpoint()] });
      const result = await store.eventStore.append(
        [event],
        await appendOptions(store, { mayBeStored: true }),
      );
      if (result.stale) throw new Error('The endpoints have changed.');
      return result.written === 'all' || result.written.has(id);
    };

    it('give the key to the first event, and tell the second one that it is claimed', async () => {
      expect(await claim(first)).toMatchObject({ eventId: first, isClaimed: true });
      const held = await claim(second, { data: 'other' });
      expect(held).toMatchObject({ eventId: first, isClaimed: true, fingerprint: Buffer.from('{}') });
      // A request that is repeated under the claimed id.
      expect(await claim(first)).toMatchObject({ eventId: first, isClaimed: true });
    });

    it('of several events at once each get an answer', async () => {
      await claim(first);
      const other = newEventId();
      const claims = [
        { key: 'k', eventId: second },
        { key: 'l', eventId: other },
      ];
      const holders = await store.claims.claim(
        claims.map((each) => ({ tenant: 'acme', ...each, fingerprint: Buffer.from('{}') })),
        { idempotencyTtlMs: HOUR_MS, now: Date.now(), mayExpireKeys: true },
      );
      const ids = claims.map(({ key }) => holders.get(idempotencyKeyName('acme', key))!.eventId);
      expect(ids).toEqual([first, other]);
      expect(await claim(second, { key: 'k' })).toMatchObject({ eventId: first });
    });

    it('end when their event is stored, also if the log has it twice', async () => {
      await claim(first);
      expect(await storeEvent(first)).toBe(true);
      const held = { eventId: first, isClaimed: false, type: 'order.paid', deliveries: 1 };
      expect(await claim(second)).toMatchObject(held);
      expect(await storeEvent(first)).toBe(false);
      expect(await claim(second)).toMatchObject(held);
    });

    it('lose the key to an event that is stored directly, and do not get it back', async () => {
      await claim(first);
      expect(await storeEvent(second)).toBe(true);
      expect(await storeEvent(first)).toBe(false);
      expect(await claim(first)).toMatchObject({ eventId: second, isClaimed: false });
    });

    it('take an expired key over, unless the clock of the process may be wrong', async () => {
      await claim(first, { ttlMs: -1_000 });
      expect(await claim(second, { mayExpireKeys: false })).toMatchObject({ eventId: first });
      expect(await claim(second)).toMatchObject({ eventId: second, isClaimed: true });
    });

    it('whose answer is lost have taken effect, and a repeated one finds them', async () => {
      await store.unreliable.loseNextAnswer();
      await expect(claim(first, {}, store.unreliable)).rejects.toMatchObject({
        name: 'StoreError',
      });
      expect(await claim(second)).toMatchObject({ eventId: first, isClaimed: true });
    });
  });
}
