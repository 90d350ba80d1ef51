import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';

export function describeTenantLimits(name: string, createFixture: CreateStoreFixture): void {
  describe(`the tenant limits in ${name}`, () => {
    let store: StoreFixture;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    it('returns tenants with a limit of their own, and no others', async () => {
      await store.setTenantLimit('acme', { perSecond: 0.5, burst: 2 });
      await store.setTenantLimit('other', null);
      expect(await store.tenantLimits.load()).toEqual(new Map([['acme', { perSecond: 0.5, burst: 2 }]]));
    });

    it('returns limits as they are now: changed, and removed', async () => {
      await store.setTenantLimit('acme', { perSecond: 1, burst: 1 });
      await store.tenantLimits.load();
      await store.setTenantLimit('acme', { perSecond: 5, burst: 10 });
      expect((await store.tenantLimits.load()).get('acme')).toEqual({ perSecond: 5, burst: 10 });
      await store.setTenantLimit('acme', null);
      expect((await store.tenantLimits.load()).size).toBe(0);
    });

    it('throws a StoreError if the connection is lost, and works again afterwards', async () => {
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.tenantLimits.load()).rejects.toMatchObject({ name: 'StoreError' });
      expect((await store.unreliable.tenantLimits.load()).size).toBe(0);
    });
  });
}
