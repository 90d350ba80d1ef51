import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Endpoint } from '../domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../domain/endpoint-config.ts';
import { matchesType } from '../domain/event.ts';
import { Subscriptions } from './subscriptions.ts';

let count = 0;
function endpoint(config: EndpointConfig = {}, part: Partial<Endpoint> = {}): Endpoint {
  count += 1;
  const id = `0190aaaa-0000-7000-8000-${String(count).padStart(12, '0')}`;
  const record = { id, tenant: 'acme', url: 'https://a.test/', config, enabled: true, disabledReason: null };
  return { ...resolveEndpoint({ ...record, paused: false, deleted: false }, []), ...part };
}

const event = (type: string, part: object = {}) => ({
  tenant: 'acme',
  type,
  channels: [],
  endpointIds: null,
  data: Buffer.from('null'),
  schemaVersion: null,
  idempotencyKey: null,
  ...part,
});

describe('FAN-2: types', () => {
  it.each([
    ['*', 'order.created', true],
    ['*', 'posthorn.endpoint.disabled', false],
    ['posthorn.*', 'posthorn.endpoint.disabled', true],
    ['posthorn.endpoint.disabled', 'posthorn.endpoint.disabled', true],
    ['order.*', 'order.created', true],
    ['order.*', 'order.item.added', true],
    ['order.*', 'order', false],
    ['order.*', 'orders.created', false],
    ['order.item.*', 'order.created', false],
    ['order.created', 'order.created', true],
    ['order.created', 'order.created.twice', false],
    ['order.created', 'Order.created', false],
  ])('%s and %s: %s', (pattern, type, expected) => {
    expect(matchesType(pattern, type)).toBe(expected);
  });
});

describe('FAN-1: the endpoints of an event', () => {
  it('are the endpoints of its tenant that subscribe to its type, each once', () => {
    const all = endpoint();
    const orders = endpoint({ events: ['order.*', 'order.created'] });
    const others = endpoint({ events: ['invoice.*'] });
    const stranger = endpoint({}, { tenant: 'other' });
    const subscriptions = new Subscriptions();
    subscriptions.update([all, orders, others, stranger]);
    expect(subscriptions.match(event('order.created'))).toEqual([all, orders]);
    expect(subscriptions.match(event('order.created', { tenant: 'nobody' }))).toEqual([]);
  });

  it('that have channels need one in common with the event', () => {
    const anything = endpoint();
    const eu = endpoint({ channels: ['eu', 'vip'] });
    const subscriptions = new Subscriptions();
    subscriptions.update([anything, eu]);
    expect(subscriptions.match(event('a'))).toEqual([anything]);
    expect(subscriptions.match(event('a', { channels: ['us'] }))).toEqual([anything]);
    expect(subscriptions.match(event('a', { channels: ['us', 'vip'] }))).toEqual([anything, eu]);
  });

  it('can be named regardless of their types, but only within the tenant', () => {
    const one = endpoint({ events: ['x'] });
    const stranger = endpoint({}, { tenant: 'other' });
    const subscriptions = new Subscriptions();
    subscriptions.update([one, endpoint(), stranger]);
    const endpointIds = [one.id, one.id, stranger.id];
    expect(subscriptions.match(event('a', { endpointIds }))).toEqual([one]);
    expect(subscriptions.match(event('a', { endpointIds: [] }))).toEqual([]);
    expect(subscriptions.get('acme', stranger.id)).toBeUndefined();
  });

  it('FAN-3: change with the next update, even if the type was cached', () => {
    const one = endpoint({ events: ['a'] });
    const subscriptions = new Subscriptions();
    subscriptions.update([one]);
    expect(subscriptions.match(event('a'))).toEqual([one]);
    expect(subscriptions.match(event('b'))).toEqual([]);
    const changed = { ...one, events: ['b'] };
    subscriptions.update([changed]);
    expect(subscriptions.match(event('a'))).toEqual([]);
    expect(subscriptions.match(event('b'))).toEqual([changed]);
  });

  it.each([
    ['paused', { paused: true }, 1, true],
    ['disabled, so that its deliveries are recorded as skipped', { enabled: false }, 1, false],
    ['deleted', { deleted: true }, 0, false],
  ])('HLT-4: %s', (_, part, expected, canBeNamed) => {
    const one = endpoint();
    const subscriptions = new Subscriptions();
    subscriptions.update([one]);
    subscriptions.match(event('a'));
    subscriptions.update([{ ...one, ...part }]);
    expect(subscriptions.match(event('a'))).toHaveLength(expected);
    expect(subscriptions.get('acme', one.id) !== undefined).toBe(canBeNamed);
  });

  it('HLT-4: are followed by the disabled ones', () => {
    const off = endpoint({ channels: ['eu'] }, { enabled: false });
    const on = endpoint();
    const subscriptions = new Subscriptions();
    subscriptions.update([off, on]);
    expect(subscriptions.match(event('a', { channels: ['eu'] }))).toEqual([on, off]);
    expect(subscriptions.match(event('a'))).toEqual([on]);
  });

  it('may be none, and explainUnmatched says why', () => {
    const off = endpoint({ events: ['a'], channels: ['eu'] }, { enabled: false });
    const subscriptions = new Subscriptions();
    subscriptions.update([off, endpoint({ events: ['b'], filter: { 'data.amount': 1 } })]);
    const explain = (query: ReturnType<typeof event>) =>
      subscriptions.explainUnmatched(query, subscriptions.match(query));
    expect(explain(event('a', { channels: ['eu'] }))).toBe('disabled');
    expect(explain(event('a'))).toBe('filtered');
    expect(explain(event('b'))).toBe('filtered');
    expect(explain(event('c'))).toBe('no_endpoint');
    expect(explain(event('a', { endpointIds: [off.id] }))).toBe('disabled');
    expect(explain(event('a', { endpointIds: [] }))).toBe('no_endpoint');
  });

  it('stay correct when every event has a new type', () => {
    const one = endpoint({ events: ['t.*'] });
    const subscriptions = new Subscriptions();
    subscriptions.update([one]);
    for (let i = 0; i < 20_100; i += 1) subscriptions.match(event(`t.${i}`));
    expect(subscriptions.match(event('t.1'))).toEqual([one]);
    expect(subscriptions.match(event('u.1'))).toEqual([]);
  });
});

describe('FAN-2: filters', () => {
  afterEach(() => vi.restoreAllMocks());
  const paid = (amount: unknown, part: object = {}) =>
    event('order.paid', { data: Buffer.from(JSON.stringify({ amount })), ...part });

  it('apply after type and channel, and only to their own endpoint', () => {
    const all = endpoint();
    const large = endpoint({ filter: { 'data.amount': { $gte: 100 } } });
    const eu = endpoint({ filter: { 'data.amount': { $gte: 100 } }, channels: ['eu'] });
    const refunds = endpoint({ filter: { 'data.amount': 1 }, events: ['refund.*'] });
    const subscriptions = new Subscriptions();
    subscriptions.update([all, large, eu, refunds]);
    expect(subscriptions.match(paid(100))).toEqual([all, large]);
    expect(subscriptions.match(paid(100, { channels: ['eu'] }))).toEqual([all, large, eu]);
    expect(subscriptions.match(paid(1))).toEqual([all]);
  });

  it('apply also to an endpoint that is named', () => {
    const large = endpoint({ filter: { 'data.amount': { $gte: 100 } }, events: ['other'] });
    const subscriptions = new Subscriptions();
    subscriptions.update([large]);
    expect(subscriptions.match(paid(100, { endpointIds: [large.id] }))).toEqual([large]);
    expect(subscriptions.match(paid(99, { endpointIds: [large.id] }))).toEqual([]);
  });

  it('are added and removed by an update', () => {
    const one = endpoint({ filter: { 'data.amount': 1 } });
    const subscriptions = new Subscriptions();
    subscriptions.update([one]);
    expect(subscriptions.match(paid(2))).toEqual([]);
    const without = { ...one, filter: null };
    subscriptions.update([without]);
    expect(subscriptions.match(paid(2))).toEqual([without]);
    subscriptions.update([one]);
    expect(subscriptions.match(paid(2))).toEqual([]);
  });

  it('parse the data once, and only if one of them needs it', () => {
    const parse = vi.spyOn(JSON, 'parse');
    const subscriptions = new Subscriptions();
    subscriptions.update([endpoint(), endpoint({ filter: { type: 'order.paid' } })]);
    expect(subscriptions.match(paid(1))).toHaveLength(2);
    expect(subscriptions.match(paid(1, { endpointIds: [] }))).toHaveLength(0);
    subscriptions.update([endpoint({ filter: { 'data.amount': 1 }, events: ['another'] })]);
    subscriptions.update([endpoint({ filter: { 'data.amount': 1 }, channels: ['another'] })]);
    expect(subscriptions.match(paid(1))).toHaveLength(2);
    expect(parse).not.toHaveBeenCalled();
    subscriptions.update([1, 2, 3].map((amount) => endpoint({ filter: { 'data.amount': amount } })));
    expect(subscriptions.match(paid(1))).toHaveLength(3);
    expect(parse).toHaveBeenCalledTimes(1);
  });

  it('share a budget equally: a filter that exceeds its part matches, and the others keep theirs', () => {
    const greedy = Array.from({ length: 20 }, () => endpoint({ filter: { 'data.amount': -1 } }));
    const modest = endpoint({ filter: { 'data.amount.0': 1 } });
    const subscriptions = new Subscriptions();
    subscriptions.update([...greedy, modest]);
    const many = Array.from({ length: 100_000 }, () => 0);
    expect(subscriptions.match(paid(many))).toEqual(greedy);
    const work = subscriptions.takeWork();
    expect(work).toBeGreaterThan(900_000);
    expect(work).toBeLessThan(1_000_000 + 220_000);
    expect(subscriptions.takeWork()).toBe(0);
  });

  it('are not slowed down by 50,000 patterns of one tenant and event types that were never seen', () => {
    const subscriptions = new Subscriptions();
    const patterns = Array.from({ length: 500 }, (_, n) => `made.up.${n}.*`);
    subscriptions.update(Array.from({ length: 100 }, () => endpoint({ events: patterns })));
    const startedAt = performance.now();
    for (let n = 0; n < 10_000; n += 1)
      expect(subscriptions.match({ ...paid(1), type: `never.seen.${n}` })).toEqual([]);
    // About 1 µs each, and nothing is cached. Trying the patterns one by one took 12 s for a thousand types.
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  it('match an event whose data cannot be parsed', () => {
    const ones = [
      endpoint({ filter: { 'data.amount': 1 } }),
      endpoint({ filter: { $not: { 'data.a': 1 } } }),
    ];
    const subscriptions = new Subscriptions();
    subscriptions.update(ones);
    expect(subscriptions.match(event('a', { data: Buffer.from('{"amount":') }))).toEqual(ones);
  });

  it('that this version cannot parse match everything', () => {
    const future = endpoint({ filter: { 'data.amount': { $near: 1 } } });
    const subscriptions = new Subscriptions();
    subscriptions.update([future]);
    expect(subscriptions.match(paid(2))).toEqual([future]);
  });
});
