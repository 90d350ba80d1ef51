import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Endpoint } from './endpoint.ts';
import { resolveEndpoint } from './endpoint-config.ts';
import { EndpointIndex } from './endpoint-index.ts';
import type { Uuid } from './ids.ts';

const TOKEN = 'AbCdEfGhIjKlMnOpQrSt-_';
const NOTIFIER = { kind: 'slack', events: ['posthorn.*'] } as const;
const idOf = (n: number): Uuid => `0199d4c2-6f3a-7b15-9e42-5a0c81d700${n.toString(16).padStart(2, '0')}`;

const anEndpoint = (part: Partial<Endpoint> = {}): Endpoint => {
  const state = { enabled: true, disabledReason: null, paused: false, deleted: false };
  const record = { id: idOf(1), tenant: 'acme', url: 'https://a.test/', config: {}, ...state };
  return { ...resolveEndpoint(record, []), ...part };
};

const changes = fc.array(
  fc.record({
    id: fc.integer({ min: 0, max: 5 }).map(idOf),
    tenant: fc.constantFrom('acme', 'globex'),
    url: fc.constantFrom('https://a.test/', `https://a.test/inbox/${TOKEN}`),
    events: fc.constantFrom(['*'], ['a', 'b'], ['posthorn.*', 'a']),
    enabled: fc.boolean(),
    paused: fc.boolean(),
    deleted: fc.boolean(),
    notifier: fc.constantFrom(null, NOTIFIER),
    isForgotten: fc.boolean(),
  }),
  { maxLength: 20 },
);

describe('the index of endpoints', () => {
  test('shows after every change what a scan of all endpoints would find', () => {
    fc.assert(
      fc.property(changes, (all) => {
        const index = new EndpointIndex();
        const model = new Map<Uuid, Endpoint>();
        for (const { isForgotten, ...part } of all) {
          // The tenant of an endpoint never changes.
          const endpoint = anEndpoint({ ...part, tenant: model.get(part.id)?.tenant ?? part.tenant });
          if (isForgotten) {
            model.delete(endpoint.id);
            index.delete(endpoint.id);
          } else {
            model.set(endpoint.id, endpoint);
            index.set(endpoint);
          }
        }
        const active = [...model.values()].filter(({ deleted }) => !deleted);
        const totals = (endpoints: readonly Endpoint[]) => ({
          endpoints: endpoints.length,
          disabled: endpoints.filter(({ enabled }) => !enabled).length,
          paused: endpoints.filter(({ enabled, paused }) => enabled && paused).length,
          notifiers: endpoints.filter(({ notifier }) => notifier !== null).length,
          disabledNotifiers: endpoints.filter(({ enabled, notifier }) => !enabled && notifier !== null)
            .length,
          patterns: endpoints.reduce((sum, { events }) => sum + events.length, 0),
        });
        expect(new Set(index.all())).toEqual(new Set(model.values()));
        expect(index.totalsOf(null)).toEqual(totals(active));
        for (const tenant of ['acme', 'globex', 'unknown'])
          expect(index.totalsOf(tenant)).toEqual(totals(active.filter((each) => each.tenant === tenant)));
        for (let shard = 0; shard < 6; shard += 1) {
          const own = model.get(idOf(shard));
          expect([...index.ofShard(shard)]).toEqual(own === undefined ? [] : [own]);
          expect(index.totalsOfShard(shard)).toEqual(totals(active.filter((each) => each === own)));
        }
        expect(new Set(index.operational())).toEqual(
          new Set(
            active.filter(({ events, notifier }) => notifier !== null || events.includes('posthorn.*')),
          ),
        );
        expect(new Set(index.atInbox(TOKEN))).toEqual(
          new Set(active.filter(({ url }) => url.endsWith(TOKEN))),
        );
      }),
    );
  });

  test.each([
    `http://127.0.0.1:8787/inbox/${TOKEN}?from=shop`,
    `http://127.0.0.1:8787/inbox/${TOKEN}#x`,
    `http://127.0.0.1:8787/inbox/%41${TOKEN.slice(1)}`,
    `http://localhost:8787/inbox/${TOKEN}`,
  ])('finds an endpoint at %s, so that its headers are redacted', (url) => {
    const index = new EndpointIndex();
    const endpoint = anEndpoint({ url });
    index.set(endpoint);
    expect([...index.atInbox(TOKEN)]).toEqual([endpoint]);
    expect([...index.atInbox(TOKEN.toLowerCase())]).toEqual([]);
  });

  test('finds nothing by a token in the query, or a longer one', () => {
    const index = new EndpointIndex();
    index.set(anEndpoint({ url: `https://a.test/?token=${TOKEN}` }));
    index.set(anEndpoint({ id: idOf(2), url: `https://a.test/inbox/${TOKEN}x` }));
    expect([...index.atInbox(TOKEN)]).toEqual([]);
  });
});
