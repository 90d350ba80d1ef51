import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { accept } from './support/records.ts';

export function describeEndpointDirectory(name: string, createFixture: CreateStoreFixture): void {
  describe(`the endpoint directory in ${name}`, () => {
    let store: StoreFixture;
    beforeAll(async () => {
      store = await createFixture();
    });
    afterAll(() => store?.close());

    it('is empty until the first refresh, and then has every endpoint as of one version', async () => {
      const id = await store.createEndpoint({ config: { ordering: 'fifo', events: ['a.*'] } });
      const directory = store.createDirectory();
      expect([directory.version, [...directory.all()]]).toEqual([0, []]);
      await directory.refresh();
      expect(directory.version).toBe(await store.endpointVersion());
      expect(directory.get(id)).toMatchObject({
        id,
        tenant: 'acme',
        ordering: 'fifo',
        events: ['a.*'],
        maxInFlight: 1,
        enabled: true,
        deleted: false,
      });
      expect([...directory.all()].map((endpoint) => endpoint.id)).toContain(id);
    });

    it('passes new and changed endpoints to its listeners, and does not call them otherwise', async () => {
      const id = await store.createEndpoint();
      const directory = store.createDirectory();
      await directory.refresh();
      const calls: (readonly Endpoint[])[] = [];
      directory.onChange((changed) => calls.push(changed));
      await directory.refresh();
      expect(calls).toEqual([]);
      await store.setEnabled(id, false);
      const added = await store.createEndpoint();
      await directory.refresh();
      expect(calls).toHaveLength(1);
      const changes = new Map(calls[0]!.map((endpoint) => [endpoint.id, endpoint.enabled]));
      expect(changes).toEqual(
        new Map([
          [id, false],
          [added, true],
        ]),
      );
      expect(directory.get(id)).toMatchObject({ enabled: false, disabledReason: 'manual' });
      expect(directory.reads).toBe(3);
    });

    it('starts another read for a caller that came while a read was running', async () => {
      const directory = store.createDirectory();
      const underWay = directory.refresh();
      const id = await store.createEndpoint();
      await Promise.all([directory.refresh(), underWay]);
      expect(directory.get(id)).toBeDefined();
      expect(directory.version).toBe(await store.endpointVersion());
    });

    it('shares one read among callers that wait for the next one', async () => {
      const directory = store.createDirectory();
      await Promise.all([directory.refresh(), directory.refresh(), directory.refresh(), directory.refresh()]);
      expect(directory.reads).toBe(2);
    });

    it('keeps a deleted endpoint until `forget` is called', async () => {
      const id = await store.createEndpoint();
      const directory = store.createDirectory();
      await directory.refresh();
      await store.deleteEndpoint(id);
      await directory.refresh();
      expect(directory.get(id)).toMatchObject({ deleted: true });
      directory.forget(id);
      expect(directory.get(id)).toBeUndefined();
      await directory.refresh();
      expect(directory.get(id)).toBeUndefined();
    });

    it('reads an endpoint that was deleted before the first refresh only if it has waiting deliveries', async () => {
      const [idle, busy] = [await store.createEndpoint(), await store.createEndpoint()];
      await accept(store, busy);
      await store.deleteEndpoint(idle);
      await store.deleteEndpoint(busy);
      const directory = store.createDirectory();
      await directory.refresh();
      expect(directory.get(idle)).toBeUndefined();
      expect(directory.get(busy)).toMatchObject({ deleted: true });
    });
  });
}
