import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { OutboxRead } from '../../src/ports/outbox-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { appendOptions, newEvent, newOutboxRow } from './support/records.ts';

const READ: OutboxRead = { afterSeq: '0', minAgeMs: 0, maxRows: 100, maxBytes: 1_000_000 };

export function describeOutboxStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the outbox store in ${name}`, () => {
    let store: StoreFixture;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    const publish = async (parts: Parameters<typeof newOutboxRow>[0] = {}, ageMs = 0): Promise<Uuid> => {
      const row = newOutboxRow(parts);
      await store.publish(row, ageMs);
      return row.id;
    };
    const read = (parts: Partial<OutboxRead> = {}) => store.outbox.read({ ...READ, ...parts });
    const readIds = async (parts: Partial<OutboxRead> = {}) => (await read(parts)).map(({ id }) => id);

    it('reads rows in order, with everything that the caller passed', async () => {
      const options = { channels: ['a'], deliver_at: 1_800_000_000_000 };
      const first = newOutboxRow({ data: Buffer.from('"é"'), options, idempotencyKey: 'k' });
      await store.publish(first);
      const second = await publish({ tenant: 'other', type: 'x' });
      const rows = await read();
      expect(rows).toEqual([
        { ...first, seq: expect.any(String) },
        expect.objectContaining({
          id: second,
          tenant: 'other',
          type: 'x',
          options: null,
          idempotencyKey: null,
        }),
      ]);
      expect(Number(rows[1]!.seq)).toBeGreaterThan(Number(rows[0]!.seq));
    });

    it('reads rows after a given number, and compares numbers numerically', async () => {
      const ids: Uuid[] = [];
      for (let i = 0; i < 12; i += 1) ids.push(await publish());
      const rows = await read();
      expect(rows.map(({ id }) => id)).toEqual(ids);
      expect(await readIds({ afterSeq: rows[8]!.seq })).toEqual(ids.slice(9));
    });

    it('skips the rows of given tenants, and reads as many others instead', async () => {
      const ids: Uuid[] = [];
      for (const tenant of ['a', 'a', 'b', 'a', 'c', 'b']) ids.push(await publish({ tenant }));
      expect(await readIds({ exceptTenants: ['a'], maxRows: 2 })).toEqual([ids[2], ids[4]]);
      expect(await readIds({ exceptTenants: ['a', 'b'] })).toEqual([ids[4]]);
      expect(await readIds({ exceptTenants: [] })).toEqual(ids);
    });

    it('reads at most the given rows and bytes, but always one row', async () => {
      const ids: Uuid[] = [];
      for (let i = 0; i < 4; i += 1) ids.push(await publish({ data: Buffer.from(`"${'x'.repeat(98)}"`) }));
      expect(await readIds({ maxRows: 2 })).toEqual(ids.slice(0, 2));
      expect(await readIds({ maxBytes: 150 })).toEqual(ids.slice(0, 2));
      expect(await readIds({ maxBytes: 0 })).toEqual(ids.slice(0, 1));
    });

    it('returns nothing until the first row is old enough, and then younger rows too', async () => {
      const young = await publish();
      expect(await readIds({ minAgeMs: 60_000 })).toEqual([]);
      expect(await readIds()).toEqual([young]);
      const old = await publish({}, 120_000);
      expect(await readIds({ minAgeMs: 60_000 })).toEqual([young, old]);
    });

    it('does not lock or remove the rows that it reads', async () => {
      const id = await publish();
      const [row] = await read();
      expect(await readIds()).toEqual([id]);
      const options = await appendOptions(store, { outboxSeqs: [row!.seq] });
      await store.eventStore.append([newEvent({ id })], options);
      expect(await readIds()).toEqual([]);
    });

    it('stores rejected rows with the reason, even two rows with the same id', async () => {
      const bad = await publish();
      await publish({ id: bad });
      const good = await publish();
      const rows = await read();
      const rejected = rows.slice(0, 2).map(({ seq }) => ({ seq, reason: `no ${seq}` }));
      await store.outbox.reject(rejected);
      await store.outbox.reject([{ seq: rows[0]!.seq, reason: 'again' }]);
      expect(await readIds()).toEqual([good]);
      const stored = await store.rejectedOutbox();
      expect(stored.map(({ reason }) => reason).toSorted()).toEqual(rejected.map(({ reason }) => reason));
      expect(stored.map(({ id }) => id)).toContain(bad);
      expect(new Set(stored.map(({ id }) => id)).size).toBe(2);
    });

    it('rejects a row once if the call is repeated after a lost answer', async () => {
      const [bad, good] = [await publish(), await publish()];
      const [row] = await read();
      const rejected = [{ seq: row!.seq, reason: 'no' }];
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.outbox.reject(rejected)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      await store.unreliable.outbox.reject(rejected);
      expect(await readIds()).toEqual([good]);
      expect(await store.rejectedOutbox()).toEqual([{ id: bad, reason: 'no' }]);
    });

    it('reports how long the first row has waited, and how many rows were rejected', async () => {
      expect(await store.outbox.readLag()).toEqual({ oldestSeq: null, lagMs: 0, rejected: 0 });
      await publish({}, 90_000);
      await publish();
      const { lagMs, oldestSeq } = await store.outbox.readLag();
      expect(lagMs).toBeGreaterThanOrEqual(90_000);
      expect(lagMs).toBeLessThan(180_000);
      const rows = await read();
      expect(rows[0]!.seq).toBe(oldestSeq);
      await store.outbox.reject([{ seq: rows[0]!.seq, reason: 'no' }]);
      expect(await store.outbox.readLag()).toMatchObject({ rejected: 1 });
    });
  });
}
