import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { EventRecord } from '../../src/ports/event-store.ts';
import type { FanOutSlice, SliceDeliveries } from '../../src/ports/fan-out-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { accept, appendOptions, HOUR_MS, loadAll, newEvent, newOutboxRow } from './support/records.ts';

export function describeFanOutStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the fan-out store in ${name}`, () => {
    let store: StoreFixture;
    /** Five endpoints. */
    let ids: Uuid[];
    beforeAll(async () => {
      store = await createFixture();
      ids = [];
      for (let n = 0; n < 5; n += 1) ids.push(await store.createEndpoint());
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    /** One delivery is written with the event, two slices of two later. */
    const newSliced = (parts: Partial<EventRecord> = {}, hasFifo = false): EventRecord => ({
      ...newEvent({ ...parts, endpointIds: ids.slice(0, 1) }),
      unwritten: {
        slices: [
          { endpointIds: ids.slice(1, 3), hasFifo, wasDisabled: false },
          { endpointIds: ids.slice(3), hasFifo, wasDisabled: false },
        ],
        deliverAt: null,
      },
    });
    const append = async (event: EventRecord, options: { mayBeStored?: boolean } = {}) =>
      store.eventStore.append([event], await appendOptions(store, options));
    const findNext = (after = '', max = 100) => store.fanOuts.findNext(after, max);
    const deliveriesOf = (
      { eventId, firstOrdinal, endpointIds }: FanOutSlice,
      fifo = false,
    ): SliceDeliveries => ({
      waiting: endpointIds.map((endpointId, index) => ({
        id: deliveryIdOf(eventId, firstOrdinal + index),
        endpointId,
        dueAt: null,
        fifo,
      })),
      skipped: [],
    });
    const write = async (slice: FanOutSlice, deliveries = deliveriesOf(slice)) =>
      store.fanOuts.write(slice, deliveries, await store.endpointVersion());
    const waitingFor = async (endpointId: Uuid): Promise<Uuid[]> =>
      (await loadAll(store, endpointId)).fresh.map(({ id }) => id);
    const waitingForAll = async (): Promise<Uuid[]> => (await Promise.all(ids.map(waitingFor))).flat();

    it('returns the unwritten endpoints of an event slice by slice, until all are written', async () => {
      const event = newSliced();
      expect(await append(event)).toEqual({ stale: false, written: new Set([event.id]) });
      expect(await waitingForAll()).toEqual([deliveryIdOf(event.id, 0)]);
      const first = (await findNext())!;
      expect(first).toEqual({
        eventId: event.id,
        tenant: 'acme',
        firstOrdinal: 1,
        endpointIds: ids.slice(1, 3),
        wasDisabled: false,
        deliverAt: null,
      });
      expect(await write(first)).toBe('written');
      const second = (await findNext())!;
      expect(second).toMatchObject({ firstOrdinal: 3, endpointIds: ids.slice(3) });
      expect(await write(second)).toBe('written');
      expect(await findNext()).toBeNull();
      expect(await waitingForAll()).toEqual(
        [0, 1, 2, 3, 4].map((ordinal) => deliveryIdOf(event.id, ordinal)),
      );
    });

    it('counts the unwritten slices of a tenant, up to a number', async () => {
      expect(await store.fanOuts.countSlices('acme', 10)).toBe(0);
      await append(newSliced());
      await append(newSliced());
      expect(await store.fanOuts.countSlices('acme', 10)).toBe(4);
      expect(await store.fanOuts.countSlices('acme', 3)).toBe(3);
      expect(await store.fanOuts.countSlices('other', 10)).toBe(0);
      await write((await findNext())!);
      expect(await store.fanOuts.countSlices('acme', 10)).toBe(3);
    });

    it('counts unwritten deliveries in the answer for a repeated idempotency key', async () => {
      const event = newSliced({ idempotencyKey: 'k' });
      await append({ ...event, idempotencyKey: 'k', fingerprint: Buffer.from('f') });
      const holders = await store.eventStore.findKeyHolders([{ tenant: 'acme', key: 'k' }]);
      expect([...holders.values()]).toMatchObject([{ eventId: event.id, deliveries: 5 }]);
    });

    it('stores the slices of an event once, even if it is appended twice', async () => {
      const event = newSliced();
      await append(event);
      expect(await append(event, { mayBeStored: true })).toEqual({ stale: false, written: new Set() });
      const seen: number[] = [];
      for (let slice = await findNext(); slice !== null; slice = await findNext()) {
        seen.push(slice.firstOrdinal);
        await write(slice);
      }
      expect(seen).toEqual([1, 3]);
    });

    it('stores the slices of an event from the outbox, and keeps deliver_at', async () => {
      const row = newOutboxRow();
      await store.publish(row);
      const [read] = await store.outbox.read({ afterSeq: '0', minAgeMs: 0, maxRows: 10, maxBytes: 1000 });
      const deliverAt = Math.trunc(Date.now()) + HOUR_MS;
      const sliced = newSliced({ id: row.id });
      const event = { ...sliced, unwritten: { ...sliced.unwritten!, deliverAt } };
      const options = await appendOptions(store, { outboxSeqs: [read!.seq] });
      expect(await store.eventStore.append([event], options)).toMatchObject({ written: new Set([row.id]) });
      expect(await findNext()).toMatchObject({ eventId: row.id, deliverAt });
      expect(await store.outboxIds()).toEqual([]);
    });

    it('writes a slice once, even if a process writes it again', async () => {
      await append(newSliced());
      const slice = (await findNext())!;
      expect(await write(slice)).toBe('written');
      expect(await write(slice)).toBe('gone');
      expect(await waitingForAll()).toHaveLength(3);
    });

    it('writes a slice once if many processes try at the same time', async () => {
      await append(newSliced());
      const slice = (await findNext())!;
      const results = await Promise.all(Array.from({ length: 8 }, () => write(slice)));
      expect(results.filter((result) => result === 'written')).toHaveLength(1);
      expect(await waitingForAll()).toHaveLength(3);
    });

    it('keeps the slice if the request is lost, and has written it if the answer is lost', async () => {
      await append(newSliced());
      const slice = (await findNext())!;
      const version = await store.endpointVersion();
      const lost = () => store.unreliable.fanOuts.write(slice, deliveriesOf(slice), version);
      await store.unreliable.loseNextRequest();
      await expect(lost()).rejects.toMatchObject({ failure: 'outcome_unknown' });
      expect(await waitingForAll()).toHaveLength(1);
      await store.unreliable.loseNextAnswer();
      await expect(lost()).rejects.toMatchObject({ failure: 'outcome_unknown' });
      await expect.poll(waitingForAll).toHaveLength(3);
      expect(await write(slice)).toBe('gone');
    });

    it('writes the first endpoints of a slice, and returns the others next', async () => {
      const event = newSliced();
      await append(event);
      const part = (await findNext('', 1))!;
      expect(part.endpointIds).toEqual([ids[1]]);
      expect(await write(part)).toBe('written');
      const rest = (await findNext('', 1))!;
      expect(rest).toMatchObject({ eventId: event.id, firstOrdinal: 2, endpointIds: [ids[2]] });
      expect(await write(rest)).toBe('written');
      expect(await findNext()).toMatchObject({ firstOrdinal: 3 });
    });

    it('writes nothing if the endpoints have changed', async () => {
      await append(newSliced());
      const slice = (await findNext())!;
      const version = await store.endpointVersion();
      await store.setEnabled(ids[4]!, true);
      expect(await store.fanOuts.write(slice, deliveriesOf(slice), version)).toBe('stale');
      expect(await waitingForAll()).toHaveLength(1);
      expect(await write(slice)).toBe('written');
    });

    it('writes a slice of a tenant whose endpoints have not changed', async () => {
      await append({ ...newSliced(), tenant: 'globex' });
      const slice = (await findNext())!;
      const version = await store.endpointVersion();
      await store.setEnabled(ids[4]!, true);
      expect(await store.fanOuts.write(slice, deliveriesOf(slice), version)).toBe('written');
    });

    it('records deliveries to disabled and deleted endpoints as skipped', async () => {
      const event = newSliced();
      await append(event);
      const slice = (await findNext())!;
      const { waiting } = deliveriesOf(slice);
      const reasons = ['endpoint_disabled', 'endpoint_deleted'] as const;
      const skipped = waiting.map(({ id, endpointId }, index) => ({
        id,
        endpointId,
        reason: reasons[index]!,
      }));
      expect(await write(slice, { waiting: [], skipped })).toBe('written');
      for (const [index, reason] of reasons.entries())
        expect(await store.findDelivery(deliveryIdOf(event.id, index + 1))).toMatchObject({
          status: 'skipped',
          reason,
          attempts: 0,
        });
    });

    it('gives tenants turns, and writes the slices of a tenant in order', async () => {
      const [a1, a2, b] = ['acme', 'acme', 'beta'].map((tenant) => newSliced({ tenant }));
      for (const event of [a1!, a2!, b!]) await append(event);
      const order: string[] = [];
      let tenant = '';
      for (let slice = await findNext(tenant); slice !== null; slice = await findNext(tenant)) {
        tenant = slice.tenant;
        order.push(`${[a1!, a2!, b!].findIndex(({ id }) => id === slice!.eventId)} ${slice.firstOrdinal}`);
        await write(slice);
      }
      expect(order).toEqual(['0 1', '2 1', '0 3', '2 3', '1 1', '1 3']);
    });

    it('does not let a FIFO lane pass a delivery that is not written yet', async () => {
      const fifo = { delivery: { fifo: true } };
      const before = await accept(store, ids[1]!, fifo);
      const event = newSliced({}, true);
      await append(event);
      const after = await accept(store, ids[1]!, fifo);
      const other = await accept(store, ids[0]!, fifo);
      expect(await waitingFor(ids[1]!)).toEqual([before]);
      // Its delivery of the event is written. What came later waits with the other FIFO lanes of the tenant.
      expect(await waitingFor(ids[0]!)).toEqual([deliveryIdOf(event.id, 0)]);
      const slice = (await findNext())!;
      await write(slice, deliveriesOf(slice, true));
      expect(await waitingFor(ids[1]!)).toEqual([before, deliveryIdOf(event.id, 1)]);
      const last = (await findNext())!;
      await write(last, deliveriesOf(last, true));
      expect(await waitingFor(ids[1]!)).toEqual([before, deliveryIdOf(event.id, 1), after]);
      expect(await waitingFor(ids[0]!)).toEqual([deliveryIdOf(event.id, 0), other]);
    });

    it('does not hold back lanes that are not FIFO', async () => {
      await append(newSliced({}, true));
      const after = await accept(store, ids[1]!);
      expect(await waitingFor(ids[1]!)).toEqual([after]);
    });
  });
}
