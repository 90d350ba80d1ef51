import { expect, test } from 'vitest';
import { type EndpointConfig, type EndpointRecord, resolveEndpoint } from '../domain/endpoint-config.ts';
import { newId } from '../domain/ids.ts';
import { CachedEndpoint } from './cached-endpoint.ts';
import { SharedValues } from './shared-values.ts';

const recordOf = (config: EndpointConfig): EndpointRecord => ({
  id: newId(0),
  tenant: 'shop',
  url: 'https://example.com/',
  config,
  enabled: false,
  disabledReason: 'gone',
  paused: true,
  deleted: false,
  shard: 300,
  wantedShard: 301,
  placement: 2,
});

test('has every field of an endpoint, whatever its configuration', () => {
  const configs: EndpointConfig[] = [
    {},
    {
      events: ['order.*'],
      channels: ['eu'],
      filter: { type: 'order.paid' },
      api_version: 'v2',
      payload: 'thin',
      signature: 'hex',
      retry: { attempts: 2, base: 3 },
      breaker: null,
      timeout_ms: 1,
      max_in_flight: 2,
      adaptive: 'off',
      rate_limit: { per_second: 3 },
      region: 'eu',
      ordering: 'fifo',
      fifo_on_dead: 'block',
      follow_redirects: 1,
      operator: true,
    },
  ];
  for (const config of configs) {
    const record = recordOf(config);
    const secrets = [{ secret: 'whsec_a', expiresAt: null }];
    const expected = resolveEndpoint(record, secrets);
    const cached = new CachedEndpoint(record, new SharedValues().shareSettings(config), secrets);
    const fields = Object.keys(expected) as (keyof typeof expected)[];
    expect(Object.fromEntries(fields.map((field) => [field, cached[field]]))).toEqual(expected);
    const deleted = cached.asDeleted();
    expect(Object.fromEntries(fields.map((field) => [field, deleted[field]]))).toEqual({
      ...expected,
      deleted: true,
    });
  }
});

test('endpoints with equal configurations share their settings, others do not', () => {
  const shared = new SharedValues();
  const settings = shared.shareSettings({ timeout_ms: 5 });
  expect(shared.shareSettings({ timeout_ms: 5 })).toBe(settings);
  expect(shared.shareSettings({ timeout_ms: 6 })).not.toBe(settings);
  const long = { events: Array.from({ length: 500 }, (_, n) => `type.${n}`) };
  expect(shared.shareSettings(long)).not.toBe(shared.shareSettings(long));
  expect(shared.shareSettings(long).events).toBe(long.events);
});
