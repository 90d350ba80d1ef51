import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { EventCatalogue } from '../../catalogue/event-catalogue.ts';
import type { Pool } from '../../postgres/database.ts';
import { schemaCheckRoutes } from './check-routes.ts';

test('VER-1: trying a payload reads and compiles only the version that it names, and only once', async () => {
  const statements: string[] = [];
  const query = async (text: string) => {
    statements.push(text);
    if (!text.includes('event_type_versions')) return { rows: [{ name: 'order.created', revision: '1' }] };
    return { rows: ['v1', 'v2'].map((version) => ({ version, status: 'active', revision: '1' })) };
  };
  const loaded: (string | null)[] = [];
  const catalogue = new EventCatalogue({
    store: {
      load: async () => ({ types: [], tenantModes: new Map() }),
      loadSchema: async (_type, version) => {
        loaded.push(version);
        return { required: [version!] };
      },
    },
    onProblem: (_what, error) => expect.unreachable(String(error)),
  });
  const server = Fastify();
  server.decorateRequest('caller', { getter: () => ({ tenant: 'acme' }) as never });
  const limits = { maxEventBytes: 1_000, maxBatchBytes: 1_000, maxNesting: 10 };
  const conversions = { tryConversion: () => expect.unreachable() };
  await server.register(schemaCheckRoutes({ query } as unknown as Pool, limits, conversions, catalogue));
  const attempt = async (from_version: string) =>
    (
      await server.inject({
        method: 'POST',
        url: '/event-types/order.created/try',
        payload: { data: {}, from_version },
      })
    ).json();

  for (let n = 0; n < 3; n += 1)
    expect(await attempt('v1')).toMatchObject({ valid: false, errors: [{ path: 'data.v1' }] });
  expect(loaded).toEqual(['v1']);
  expect(await attempt('v2')).toMatchObject({ valid: false, errors: [{ path: 'data.v2' }] });
  expect(loaded).toEqual(['v1', 'v2']);
  expect(statements.filter((text) => /\b(schema|example)\b/.test(text))).toEqual([]);
});
