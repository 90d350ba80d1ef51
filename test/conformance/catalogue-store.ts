import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SchemaFailure } from '../../src/ports/catalogue-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newEventId, newId } from './support/ids.ts';

export function describeCatalogueStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the catalogue store in ${name}`, () => {
    let store: StoreFixture;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    const newFailure = (): SchemaFailure => ({
      id: newId(),
      tenant: 'acme',
      eventType: 'order.paid',
      version: 'v1',
      eventId: newEventId(),
      path: 'data.id',
      message: 'must be string',
    });
    const loadType = async () => (await store.catalogue.load()).types[0]!;

    it('loads types with their versions in the order of their creation', async () => {
      await store.putSchema('order.paid', null, { type: 'object' });
      for (const version of ['v2', 'v1', 'v3']) await store.putSchema('order.paid', version, true);
      await store.putSchema('order.paid', 'v2', false);
      const { types } = await store.catalogue.load();
      expect(types).toHaveLength(1);
      expect(types[0]).toMatchObject({
        name: 'order.paid',
        validation: null,
        deprecatedAt: null,
        sunsetAt: null,
      });
      expect(types[0]!.versions.map(({ version, status }) => [version, status])).toEqual([
        ['v2', 'active'],
        ['v1', 'active'],
        ['v3', 'active'],
      ]);
    });

    it('changes the revision of exactly what was changed', async () => {
      await store.putSchema('order.paid', null, true);
      for (const version of ['v1', 'v2']) await store.putSchema('order.paid', version, true);
      const before = await loadType();
      await store.putSchema('order.paid', 'v2', { type: 'object' });
      const after = await loadType();
      const changed = after.versions.map(
        ({ revision }, index) => revision !== before.versions[index]!.revision,
      );
      expect([after.revision !== before.revision, ...changed]).toEqual([false, false, true]);
    });

    it('loads the schema of a type or of a version, or null if there is none', async () => {
      await store.putSchema('order.paid', null, { type: 'object' });
      await store.putSchema('order.paid', 'v1', false);
      await store.putSchema('order.paid', 'v2', null);
      const load = (version: string | null) => store.catalogue.loadSchema('order.paid', version);
      expect(await load(null)).toEqual({ type: 'object' });
      expect([await load('v1'), await load('v2'), await load('v3')]).toEqual([false, null, null]);
      expect(await store.catalogue.loadSchema('order.sent', null)).toBeNull();
    });

    it('loads the modes of tenants, except `off`', async () => {
      await store.setTenantMode('acme', 'strict');
      await store.setTenantMode('other', 'warn');
      await store.setTenantMode('other', 'off');
      expect((await store.catalogue.load()).tenantModes).toEqual(new Map([['acme', 'strict']]));
    });

    it('records failures once, even if the call is repeated after a lost answer', async () => {
      const failures = [newFailure(), { ...newFailure(), eventId: null, version: null }];
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.catalogue.recordFailures(failures)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      const later = newFailure();
      await store.unreliable.catalogue.recordFailures([...failures, later]);
      expect(await store.schemaFailureIds()).toEqual([...failures, later].map(({ id }) => id).toSorted());
    });

    it('LIF-3: records no failure of an event that was expunged meanwhile', async () => {
      const [expunged, other] = [newFailure(), newFailure()];
      await store.expunge(expunged.eventId!);
      await store.catalogue.recordFailures([expunged, other]);
      expect(await store.schemaFailureIds()).toEqual([other.id]);
    });

    it('records failures whose texts contain any characters', async () => {
      const failure = { ...newFailure(), path: 'data.\0', message: '\0 "é" \u{1f600}' };
      await store.catalogue.recordFailures([failure]);
      expect(await store.schemaFailureIds()).toEqual([failure.id]);
    });
  });
}
