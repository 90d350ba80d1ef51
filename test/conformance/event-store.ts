import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import { idempotencyKeyName } from '../../src/ports/event-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { eventIdAt, newEventId } from './support/ids.ts';
import {
  appendOptions,
  batchOf,
  DELIVERED,
  HOUR_MS,
  loadAll,
  newEvent,
  newOutboxRow,
  newSettlement,
} from './support/records.ts';

const ALL = { stale: false, written: 'all' };
const written = (...ids: Uuid[]) => ({ stale: false, written: new Set(ids) });
const UNKNOWN = { name: 'StoreError', failure: 'outcome_unknown' };
const DAY_MS = 24 * HOUR_MS;

export function describeEventStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the event store in ${name}`, () => {
    let store: StoreFixture;
    let endpointId: Uuid;

    beforeAll(async () => {
      store = await createFixture();
    });
    afterAll(() => store?.close());

    const newEndpoint = async (): Promise<Uuid> => {
      endpointId = await store.createEndpoint();
      return endpointId;
    };
    const waitingIds = async (): Promise<Uuid[]> =>
      (await loadAll(store, endpointId)).fresh.map(({ id }) => id);
    const deliveryIds = (events: readonly { deliveries: readonly { id: Uuid }[] }[]): Uuid[] =>
      events.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));

    it.each([
      ['a batch', 3],
      ['events one by one', 1],
    ])('stores %s in the order of acceptance, and loads the events as they were', async (_, batchSize) => {
      const first = await newEndpoint();
      const second = await store.createEndpoint();
      const data = Buffer.from([0x22, 0x00, 0xff, 0x22]);
      const events = [
        newEvent({ endpointIds: [first, second], data }),
        newEvent({ endpointIds: [second], options: { headers: { 'x-a': 'b' }, schema_version: '2' } }),
        newEvent({ endpointIds: [first], type: 'NULL', tenant: 'acme:eu' }),
      ];
      for (let from = 0; from < events.length; from += batchSize) {
        const batch = events.slice(from, from + batchSize);
        expect(await store.eventStore.append(batch, await appendOptions(store))).toEqual(ALL);
      }
      const [a, b, c] = events;
      const lanes = await Promise.all([loadAll(store, first), loadAll(store, second)]);
      expect(lanes.map(({ fresh }) => fresh.map(({ id }) => id))).toEqual([
        [a!.deliveries[0]!.id, c!.deliveries[0]!.id],
        [a!.deliveries[1]!.id, b!.deliveries[0]!.id],
      ]);
      const content = {
        tenant: 'acme',
        type: 'order.paid',
        idempotencyKey: null,
        schemaVersion: null,
        isTest: false,
      };
      const found = await store.eventLookup.load([...events.map(({ id }) => id), newEventId()]);
      expect(found).toEqual(
        new Map([
          [a!.id, { ...content, id: a!.id, data, headers: null }],
          [b!.id, { ...content, id: b!.id, data: b!.data, schemaVersion: '2', headers: { 'x-a': 'b' } }],
          [c!.id, { ...content, id: c!.id, data: c!.data, headers: null, type: 'NULL', tenant: 'acme:eu' }],
        ]),
      );
    });

    it('numbers later batches after earlier ones', async () => {
      await newEndpoint();
      const events = Array.from({ length: 5 }, () => newEvent({ endpointIds: [endpointId] }));
      for (const event of events) await store.eventStore.append([event], await appendOptions(store));
      expect(await waitingIds()).toEqual(deliveryIds(events));
    });

    it('stores an event without deliveries', async () => {
      const event = newEvent();
      expect(await store.eventStore.append([event], await appendOptions(store))).toEqual(ALL);
      expect((await store.eventLookup.load([event.id])).size).toBe(1);
    });

    it('stores the due time of a scheduled delivery, and counts its age from then', async () => {
      await newEndpoint();
      const dueAt = Date.now() + DAY_MS;
      const event = newEvent({ endpointIds: [endpointId], delivery: { dueAt } });
      await store.eventStore.append([event], await appendOptions(store));
      const { fresh, due } = await loadAll(store, endpointId);
      expect(fresh).toEqual([]);
      expect(due).toMatchObject([{ id: event.deliveries[0]!.id, dueAt, agesFrom: dueAt, attempts: 0 }]);
    });

    it('writes 2,000 events with two deliveries each in one call', async () => {
      await newEndpoint();
      const other = await store.createEndpoint();
      const events = Array.from({ length: 2_000 }, () => newEvent({ endpointIds: [endpointId, other] }));
      expect(await store.eventStore.append(events, await appendOptions(store))).toEqual(ALL);
      expect(await waitingIds()).toEqual(events.map(({ deliveries }) => deliveries[0]!.id));
    });

    it.each([
      ['events', () => null],
      ['events with keys', (n: number) => (n % 2 === 0 ? `key ${n}` : null)],
    ])('gives each of many %s its own tenant, type, options, key and payload', async (_, keyOf) => {
      await newEndpoint();
      const events = Array.from({ length: 50 }, (_each, n) =>
        newEvent({
          endpointIds: [endpointId],
          tenant: `tenant-${n % 3}`,
          type: `type.${n % 5}`,
          data: Buffer.from('x'.repeat(n)),
          idempotencyKey: keyOf(n),
          options: n % 4 === 0 ? { schema_version: String(n) } : null,
        }),
      );
      await store.eventStore.append(events, await appendOptions(store));
      const found = await store.eventLookup.load(events.map(({ id }) => id));
      for (const [n, { id, tenant, type, data, idempotencyKey }] of events.entries())
        expect(found.get(id)).toMatchObject({
          ...{ tenant, type, data, idempotencyKey },
          schemaVersion: n % 4 === 0 ? String(n) : null,
        });
      expect(await waitingIds()).toEqual(deliveryIds(events));
    });

    it('HLT-4: stores deliveries to a disabled endpoint as skipped, and queues none', async () => {
      await newEndpoint();
      const disabled = await store.createEndpoint();
      await store.setEnabled(disabled, false);
      const plain = newEvent({ endpointIds: [endpointId], disabledIds: [disabled] });
      expect(await store.eventStore.append([plain], await appendOptions(store))).toEqual(ALL);
      const keyed = newEvent({
        disabledIds: [disabled],
        idempotencyKey: 'skipping',
        options: { unmatched_reason: 'disabled', skipped: 1 },
      });
      expect(await store.eventStore.append([keyed], await appendOptions(store))).toEqual(written(keyed.id));
      const again = await appendOptions(store, { mayBeStored: true });
      expect(await store.eventStore.append([plain, keyed], again)).toEqual(written());

      const skipped = { place: 'finished', status: 'skipped', reason: 'endpoint_disabled', attempts: 0 };
      for (const event of [plain, keyed])
        expect(await store.findDelivery(event.skipped[0]!.id)).toMatchObject(skipped);
      expect(await waitingIds()).toEqual(deliveryIds([plain]));
      expect((await loadAll(store, disabled)).fresh).toEqual([]);
      const holders = await store.eventStore.findKeyHolders([{ tenant: 'acme', key: 'skipping' }]);
      expect([...holders.values()]).toMatchObject([{ deliveries: 0, unmatchedReason: 'disabled' }]);
    });

    it('returns the time, and creates tenants once', async () => {
      await store.eventStore.ensureTenants(['newco', 'acme']);
      await store.eventStore.ensureTenants(['newco']);
      expect(await store.hasTenant('newco')).toBe(true);
      expect(Math.abs((await store.eventStore.now()) - Date.now())).toBeLessThan(60_000);
    });

    describe('when the endpoints have changed', () => {
      it('writes nothing, and writes the same batch after it was matched again', async () => {
        await newEndpoint();
        const options = await appendOptions(store);
        const event = newEvent({ endpointIds: [endpointId], idempotencyKey: 'stale' });
        await store.setEnabled(endpointId, false);
        expect(await store.eventStore.append([event], options)).toEqual({ stale: true });
        const withoutKey = { ...event, idempotencyKey: null };
        for (const batch of [[withoutKey], [withoutKey, newEvent({ endpointIds: [endpointId] })]])
          expect(await store.eventStore.append(batch, options)).toEqual({ stale: true });
        expect(await waitingIds()).toEqual([]);
        expect(await store.eventStore.findKeyHolders([{ tenant: 'acme', key: 'stale' }])).toEqual(new Map());
        expect(await store.eventStore.append([event], await appendOptions(store))).toEqual(written(event.id));
      });

      it('writes events of tenants whose endpoints have not changed', async () => {
        await newEndpoint();
        const options = await appendOptions(store);
        await store.setEnabled(endpointId, false);
        const other = newEvent({ tenant: 'globex' });
        expect(await store.eventStore.append([other, newEvent()], options)).toEqual({ stale: true });
        expect(await store.eventStore.append([other], options)).toEqual(ALL);
        const two = [newEvent({ tenant: 'globex' }), newEvent({ tenant: 'globex' })];
        expect(await store.eventStore.append(two, options)).toEqual(ALL);
        const withKey = newEvent({ tenant: 'globex', idempotencyKey: 'current' });
        expect(await store.eventStore.append([withKey], options)).toEqual(written(withKey.id));
      });

      it('writes nothing that was matched against a version of another history', async () => {
        const options = await appendOptions(store);
        const unknown = { ...options, endpointVersion: options.endpointVersion + 1 };
        expect(await store.eventStore.append([newEvent({ tenant: 'globex' })], unknown)).toEqual({
          stale: true,
        });
      });
    });

    describe('when the connection breaks', () => {
      it('keeps a batch whose answer was lost, and does not write it twice', async () => {
        await newEndpoint();
        const events = [newEvent({ endpointIds: [endpointId] }), newEvent({ endpointIds: [endpointId] })];
        const options = await appendOptions(store);
        await store.unreliable.loseNextAnswer();
        await expect(store.unreliable.eventStore.append(events, options)).rejects.toMatchObject(UNKNOWN);
        const again = { ...options, mayBeStored: true };
        expect(await store.unreliable.eventStore.append(events, again)).toEqual(written());
        expect(await waitingIds()).toEqual(deliveryIds(events));
      });

      it('writes a repeated batch whose request was lost, and of a partly stored batch only the missing events', async () => {
        await newEndpoint();
        const [early, late] = [
          newEvent({ endpointIds: [endpointId] }),
          newEvent({ endpointIds: [endpointId] }),
        ];
        const options = await appendOptions(store, { mayBeStored: true });
        await store.unreliable.loseNextRequest();
        await expect(store.unreliable.eventStore.append([early], options)).rejects.toMatchObject(UNKNOWN);
        expect(await waitingIds()).toEqual([]);
        expect(await store.unreliable.eventStore.append([early], options)).toEqual(written(early.id));
        expect(await store.eventStore.append([early, late], options)).toEqual(written(late.id));
        expect(await waitingIds()).toEqual(deliveryIds([early, late]));
      });

      it('does not store deliveries again that ended between the lost answer and the repeated call', async () => {
        await newEndpoint();
        const event = newEvent({ endpointIds: [endpointId] });
        const options = await appendOptions(store);
        await store.eventStore.append([event], options);
        const [id] = deliveryIds([event]);
        await store.queue.settle(batchOf([newSettlement(id!, endpointId, DELIVERED)]));
        await store.eventStore.append([event], { ...options, mayBeStored: true });
        expect(await waitingIds()).toEqual([]);
        expect(await store.findDelivery(id!)).toMatchObject({ status: 'delivered' });
      });

      it('refuses an id that is already stored unless `mayBeStored` is set', async () => {
        await newEndpoint();
        const event = newEvent({ endpointIds: [endpointId] });
        const options = await appendOptions(store);
        await store.eventStore.append([event], options);
        const fresh = newEvent({ endpointIds: [endpointId] });
        await expect(store.eventStore.append([fresh, event], options)).rejects.toMatchObject({
          failure: 'invalid_row',
        });
        expect(await waitingIds()).toEqual(deliveryIds([event]));
      });
    });

    describe('with idempotency keys', () => {
      const holderOf = async (key: string, tenant = 'acme') =>
        (await store.eventStore.findKeyHolders([{ tenant, key }])).get(idempotencyKeyName(tenant, key));

      it('gives a key to the first event, and leaves out the second event but not the rest of its batch', async () => {
        await newEndpoint();
        const first = newEvent({ endpointIds: [endpointId], idempotencyKey: 'k1', type: 'a.b' });
        const second = newEvent({ endpointIds: [endpointId], idempotencyKey: 'k1' });
        const neighbour = newEvent({ endpointIds: [endpointId] });
        const options = await appendOptions(store);
        expect(await store.eventStore.append([first], options)).toEqual(written(first.id));
        expect(await store.eventStore.append([second, neighbour], options)).toEqual(written(neighbour.id));
        expect(await waitingIds()).toEqual(deliveryIds([first, neighbour]));
        const { fingerprint } = first;
        expect(await holderOf('k1')).toEqual({
          eventId: first.id,
          fingerprint,
          unmatchedReason: null,
          deliveries: 1,
          type: 'a.b',
        });
        expect((await store.eventLookup.load([first.id])).get(first.id)!.idempotencyKey).toBe('k1');
      });

      it('separates the keys of tenants, and returns no holder for a free key', async () => {
        const options = await appendOptions(store);
        const ours = newEvent({ idempotencyKey: 'k2' });
        const theirs = newEvent({ idempotencyKey: 'k2', tenant: 'other' });
        expect(await store.eventStore.append([ours, theirs], options)).toEqual(written(ours.id, theirs.id));
        expect((await holderOf('k2', 'other'))!.eventId).toBe(theirs.id);
        expect(await holderOf('k3')).toBeUndefined();
      });

      it('gives an expired key to the next event', async () => {
        const options = await appendOptions(store, { idempotencyTtlMs: 0 });
        const [first, second] = [newEvent({ idempotencyKey: 'k4' }), newEvent({ idempotencyKey: 'k4' })];
        await store.eventStore.append([first], options);
        const again = await appendOptions(store);
        expect(await store.eventStore.append([second], again)).toEqual(written(second.id));
        expect((await holderOf('k4'))!.eventId).toBe(second.id);
      });

      it('keeps an expired key while the clock may be wrong', async () => {
        const options = await appendOptions(store, { idempotencyTtlMs: 0 });
        const [first, second] = [
          newEvent({ idempotencyKey: 'clock-1' }),
          newEvent({ idempotencyKey: 'clock-1' }),
        ];
        await store.eventStore.append([first], options);
        const again = await appendOptions(store, { now: Date.now(), mayExpireKeys: false });
        expect(await store.eventStore.append([second], again)).toEqual(written());
        expect((await holderOf('clock-1'))!.eventId).toBe(first.id);
      });

      it("keeps a key for its whole time if the store's clock has stepped back or ahead", async () => {
        const DAY_MS = 86_400_000;
        const storeNow = await store.eventStore.now();
        const events = Array.from({ length: 4 }, () => newEvent({ idempotencyKey: 'clock-2' }));
        const ttl = { idempotencyTtlMs: HOUR_MS };
        // The store's clock is 40 days behind that of the process: the key is kept from the later time on.
        const behind = await appendOptions(store, { ...ttl, now: storeNow + 40 * DAY_MS });
        expect(await store.eventStore.append([events[0]!], behind)).toEqual(written(events[0]!.id));
        const repeated = await appendOptions(store, { ...ttl, now: storeNow + 40 * DAY_MS + 1_000 });
        expect(await store.eventStore.append([events[1]!], repeated)).toEqual(written());
        const usual = await appendOptions(store, ttl);
        expect(await store.eventStore.append([events[2]!], usual)).toEqual(written());
        // The store's clock is ahead: by that of the process, the key has not expired.
        await store.eventStore.append([newEvent({ idempotencyKey: 'clock-3' })], {
          ...usual,
          idempotencyTtlMs: 0,
        });
        const ahead = await appendOptions(store, { ...ttl, now: storeNow - 40 * DAY_MS });
        const late = newEvent({ idempotencyKey: 'clock-3' });
        expect(await store.eventStore.append([late], ahead)).toEqual(written());
      });

      it('keeps the holder of a key when the batch is repeated', async () => {
        const event = newEvent({ idempotencyKey: 'k5' });
        const options = await appendOptions(store);
        await store.unreliable.loseNextAnswer();
        await expect(store.unreliable.eventStore.append([event], options)).rejects.toMatchObject(UNKNOWN);
        const again = { ...options, mayBeStored: true };
        expect(await store.eventStore.append([event], again)).toEqual(written());
        expect((await holderOf('k5'))!.eventId).toBe(event.id);
      });

      it('stores one event if many processes publish with the same key at the same time', async () => {
        await newEndpoint();
        const options = await appendOptions(store);
        const events = Array.from({ length: 12 }, () =>
          newEvent({ endpointIds: [endpointId], idempotencyKey: 'k6' }),
        );
        const answers = await Promise.all(events.map((event) => store.eventStore.append([event], options)));
        const winners = answers.flatMap((answer) => (answer.stale ? [] : [...answer.written]));
        expect(winners).toHaveLength(1);
        expect((await holderOf('k6'))!.eventId).toBe(winners[0]);
        expect(await waitingIds()).toHaveLength(1);
      });
    });

    describe('with values that cannot be stored', () => {
      it.each([
        ['a type with a NUL character', { type: 'a\u0000b' }],
        ['a key with a NUL character', { idempotencyKey: 'a\u0000b' }],
        ['options with a NUL character', { options: { headers: { 'x-a': 'a\u0000b' } } }],
        ['a time that is too late for PostgreSQL', { delivery: { dueAt: 1e19 } }],
      ])('refuses the whole batch for %s', async (_, parts) => {
        await newEndpoint();
        const good = newEvent({ endpointIds: [endpointId] });
        const bad = newEvent({ endpointIds: [endpointId], ...parts });
        const options = await appendOptions(store);
        await expect(store.eventStore.append([good, bad], options)).rejects.toMatchObject({
          failure: 'invalid_row',
        });
        await expect(store.eventStore.append([bad], options)).rejects.toMatchObject({
          failure: 'invalid_row',
        });
        expect(await waitingIds()).toEqual([]);
        expect(await store.eventStore.append([good], options)).toEqual(ALL);
      });

      it.each([
        ['an old id', -60],
        ['an id from the future', 60],
      ])(
        'throws missing_partition for %s, and stores it after the partition was created',
        async (_, days) => {
          await newEndpoint();
          const madeAt = Date.now() + days * DAY_MS;
          const event = newEvent({ id: eventIdAt(madeAt), endpointIds: [endpointId] });
          const options = await appendOptions(store);
          await expect(store.eventStore.append([event], options)).rejects.toMatchObject({
            failure: 'missing_partition',
          });
          await store.eventStore.ensurePartitions({ oldestMs: madeAt, newestMs: madeAt });
          expect(await store.eventStore.append([event], options)).toEqual(ALL);
          expect(await waitingIds()).toEqual(deliveryIds([event]));
        },
      );
    });

    describe('with rows of the outbox', () => {
      const readSeqs = async (ids: readonly Uuid[]): Promise<string[]> => {
        const rows = await store.outbox.read({ afterSeq: '0', minAgeMs: 0, maxRows: 100, maxBytes: 1e6 });
        return ids.map((id) => rows.find((row) => row.id === id)!.seq);
      };
      const publish = async (key: string | null = null): Promise<Uuid> => {
        const row = newOutboxRow({ idempotencyKey: key });
        await store.publish(row);
        return row.id;
      };

      it('deletes the rows in the commit that stores the events', async () => {
        await newEndpoint();
        const id = await publish();
        const [seq] = await readSeqs([id]);
        const event = newEvent({ id, endpointIds: [endpointId] });
        const options = await appendOptions(store, { outboxSeqs: [seq!] });
        await store.unreliable.loseNextAnswer();
        await expect(store.unreliable.eventStore.append([event], options)).rejects.toMatchObject(UNKNOWN);
        expect(await store.outboxIds()).not.toContain(id);
        expect(await waitingIds()).toEqual(deliveryIds([event]));
      });

      it('HLT-4: stores deliveries to a disabled endpoint as skipped', async () => {
        await newEndpoint();
        await store.setEnabled(endpointId, false);
        const id = await publish();
        const event = newEvent({ id, disabledIds: [endpointId] });
        const options = await appendOptions(store, { outboxSeqs: await readSeqs([id]) });
        expect(await store.eventStore.append([event], options)).toEqual(written(id));
        const [delivery] = event.skipped;
        expect(await store.findDelivery(delivery!.id)).toMatchObject({
          status: 'skipped',
          reason: 'endpoint_disabled',
        });
        expect(await waitingIds()).toEqual([]);
      });

      it('stores a row once if two processes have read it', async () => {
        await newEndpoint();
        const ids = [await publish(), await publish()];
        const seqs = await readSeqs(ids);
        const events = ids.map((id) => newEvent({ id, endpointIds: [endpointId] }));
        const options = await appendOptions(store, { outboxSeqs: seqs });
        const answers = await Promise.all([
          store.eventStore.append(events, options),
          store.unreliable.eventStore.append(events, options),
        ]);
        const stored = answers.flatMap((answer) => (answer.stale ? [] : [...answer.written]));
        expect(stored.toSorted()).toEqual(ids.toSorted());
        expect(await waitingIds()).toEqual(deliveryIds(events));
      });

      it('stores nothing for a row that another process has rejected meanwhile', async () => {
        await newEndpoint();
        const ids = [await publish(), await publish('k8')];
        const seqs = await readSeqs(ids);
        await store.outbox.reject([{ seq: seqs[1]!, reason: 'no' }]);
        const events = [
          newEvent({ id: ids[0]!, endpointIds: [endpointId] }),
          newEvent({ id: ids[1]!, endpointIds: [endpointId], idempotencyKey: 'k8' }),
        ];
        const answer = await store.eventStore.append(
          events,
          await appendOptions(store, { outboxSeqs: seqs }),
        );
        expect(answer).toEqual(written(ids[0]!));
        expect(await waitingIds()).toEqual(deliveryIds(events.slice(0, 1)));
        expect(await store.eventStore.findKeyHolders([{ tenant: 'acme', key: 'k8' }])).toEqual(new Map());
      });

      it('deletes a row whose event is stored already and holds its key', async () => {
        await newEndpoint();
        const event = newEvent({ endpointIds: [endpointId], idempotencyKey: 'k9' });
        await store.eventStore.append([event], await appendOptions(store));
        await store.publish(newOutboxRow({ id: event.id, idempotencyKey: 'k9' }));
        const options = await appendOptions(store, { outboxSeqs: await readSeqs([event.id]) });
        expect(await store.eventStore.append([event], options)).toEqual(written());
        expect(await store.outboxIds()).not.toContain(event.id);
        expect(await waitingIds()).toEqual(deliveryIds([event]));
      });

      it('leaves a row in the outbox if another event holds its key', async () => {
        await newEndpoint();
        const holder = newEvent({ idempotencyKey: 'k7' });
        await store.eventStore.append([holder], await appendOptions(store));
        const ids = [await publish('k7'), await publish()];
        const seqs = await readSeqs(ids);
        const events = [
          newEvent({ id: ids[0]!, endpointIds: [endpointId], idempotencyKey: 'k7' }),
          newEvent({ id: ids[1]!, endpointIds: [endpointId] }),
        ];
        const answer = await store.eventStore.append(
          events,
          await appendOptions(store, { outboxSeqs: seqs }),
        );
        expect(answer).toEqual(written(ids[1]!));
        const left = await store.outboxIds();
        expect(ids.map((id) => left.includes(id))).toEqual([true, false]);
      });

      it('keeps the rows of a batch that was matched against old endpoints', async () => {
        await newEndpoint();
        const id = await publish();
        const seqs = await readSeqs([id]);
        const options = await appendOptions(store, { outboxSeqs: seqs });
        await store.setEnabled(endpointId, false);
        expect(await store.eventStore.append([newEvent({ id })], options)).toEqual({ stale: true });
        expect(await store.outboxIds()).toContain(id);
      });
    });
  });
}
