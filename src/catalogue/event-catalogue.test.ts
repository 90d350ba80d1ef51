import { expect, test } from 'vitest';
import type { CatalogueType } from '../ports/catalogue-store.ts';
import { EventCatalogue } from './event-catalogue.ts';

test('VER-1: the cache of compiled schemas is limited by memory, and evicts the least recently used first', async () => {
  const loaded: string[] = [];
  const schemas: Record<string, object> = { large: { title: 'x'.repeat(1_500) } };
  const catalogue = new EventCatalogue({
    store: {
      load: async () => ({ types: [], tenantModes: new Map() }),
      loadSchema: async (type) => {
        loaded.push(type);
        return { ...schemas[type] };
      },
    },
    onProblem: (_what, error) => expect.unreachable(String(error)),
    maxCompiledBytes: 200_000,
  });
  const use = async (name: string, revision = '1'): Promise<string[]> => {
    const type: CatalogueType = {
      name,
      revision,
      validation: null,
      deprecatedAt: null,
      sunsetAt: null,
      versions: [],
    };
    await catalogue.schemaOf(type, null);
    return loaded.splice(0);
  };

  // About 16 KiB each.
  const small = Array.from({ length: 10 }, (_, n) => `small${n}`);
  for (const name of small) expect(await use(name)).toEqual([name]);
  for (const name of small) expect(await use(name)).toEqual([]);
  // A change replaces what was kept, and does not count twice.
  for (let revision = 2; revision < 30; revision += 1) await use('small9', String(revision));
  loaded.length = 0;
  for (const name of small.slice(0, 9)) expect(await use(name)).toEqual([]);
  // It takes the place of several.
  expect(await use('large')).toEqual(['large']);
  expect(await use('large')).toEqual([]);
  expect(await use('small8')).toEqual([]);
  expect(await use('small0')).toEqual(['small0']);
});
