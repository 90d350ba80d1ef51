import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../../postgres/database.ts';
import { pinRoutes } from './pin-routes.ts';

test('VER-2: listing pins reads only the endpoints of the tenant, in chunks, until the page is full', async () => {
  const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}` as Uuid;
  const numberOf = (id: string) => Number(id.slice(-12));
  const COUNT = 5_000;
  const asked: unknown[] = [];
  const query = async (text: string, values: [string, Uuid | null, number]) => {
    if (!text.includes('posthorn.endpoints')) return { rows: [{}] };
    const [tenant, before, limit] = values;
    asked.push(tenant);
    const first = before === null ? COUNT : numberOf(before) - 1;
    return { rows: Array.from({ length: Math.min(first, limit) }, (_, n) => ({ id: idOf(first - n) })) };
  };
  const endpoints = {
    // Every 1,000th has the version.
    get: (id: Uuid) =>
      ({
        id,
        tenant: 'acme',
        events: ['*'],
        apiVersion: numberOf(id) % 1_000 === 1 ? 'v1' : 'v2',
      }) as unknown as Endpoint,
  };
  const server = Fastify();
  server.decorateRequest('caller', { getter: () => ({ tenant: 'acme' }) as never });
  const versionsOf = () =>
    ['v1', 'v2'].map(
      (name) => ({ name, status: 'active', createdAt: 0, deprecatedAt: null, sunsetAt: null }) as const,
    );
  await server.register(pinRoutes({ query } as unknown as Pool, endpoints, { versionsOf }));
  const list = async (path: string) => (await server.inject(`/event-types/order.created/pins${path}`)).json();

  expect((await list('?limit=10')).data).toHaveLength(10);
  expect(asked.splice(0)).toEqual(['acme']);
  const page = await list('?limit=2&version=v1');
  expect(page.data).toMatchObject([{ version: 'v1' }, { version: 'v1' }]);
  expect(asked.splice(0)).toHaveLength(3);
  const rest = await list(`?limit=10&version=v1&cursor=${page.next_cursor}`);
  expect(rest).toMatchObject({ data: [{}, {}, {}], next_cursor: null });
});
