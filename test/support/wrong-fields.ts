/** Well-formed but invalid requests, each with the field that the answer must name. */

type WrongBody = [operation: string, path: string, body: unknown];

export function wrongBodies(tenant: string, foreignEndpoint: string): WrongBody[] {
  const url = 'https://example.com/';
  const event = { type: 'a.b', data: 1, tenant };
  return [
    ['createEndpoint', 'url', {}],
    ['createEndpoint', 'tenant', { url, tenant: ' ' }],
    ['createEndpoint', 'secret', { url, secret: 'whsec_short' }],
    ['createEndpoint', 'auth.password', { url, auth: { type: 'basic', username: 'a' } }],
    ['createEndpoint', 'headers.host', { url, headers: { host: 'a' } }],
    ['createEndpoint', 'retry.schedule[0]', { url, retry: { schedule: ['soon'] } }],
    ['updateEndpoint', 'timeout_ms', { timeout_ms: 0 }],
    ['updateEndpoint', 'tls', { tls: { cert: 'a', key: 'b' } }],
    ['rotateSecret', 'secret', { secret: 'whsec_short' }],
    ['rotateSecret', 'overlap_seconds', { overlap_seconds: -1 }],
    ['sendTestEvent', 'type', { type: 'posthorn.mine' }],
    ['tryFilter', 'event.type', { filter: null, event: { type: 'a b', data: 1 } }],
    [
      'tryFilter',
      'filter.data.a.$near',
      { filter: { 'data.a': { $near: 1 } }, event: { type: 'a.b', data: 1 } },
    ],
    ['countFilterMatches', 'filter.data.a.$near', { filter: { 'data.a': { $near: 1 } } }],
    ['estimateRequests', 'filter.data.a.$near', { filter: { 'data.a': { $near: 1 } } }],
    ['estimateRequests', 'debounce', { batch: {}, debounce: { key: 'data.a', window_ms: 1 } }],
    ['restoreArchived', 'day', {}],
    ['restoreArchived', 'day', { day: '2026-02-30' }],
    ['publishEvent', 'body', []],
    ['publishEvent', 'type', { data: 1 }],
    ['publishEvent', 'data', { type: 'a.b' }],
    ['publishEvent', 'tenant', { ...event, tenant: ' ' }],
    ['publishEvent', 'idempotency_key', { ...event, idempotency_key: '' }],
    ['publishEvent', 'schema_version', { ...event, schema_version: '' }],
    ['publishEvent', 'channels', { ...event, channels: 'a' }],
    ['publishEvent', 'deliver_at', { ...event, deliver_at: 'noon' }],
    ['publishEvent', 'headers.host', { ...event, headers: { host: 'a' } }],
    // The endpoint of another tenant.
    ['publishEvent', 'endpoint_ids[0]', { ...event, endpoint_ids: [foreignEndpoint] }],
    ['publishBatch', 'events', { events: [] }],
    ['replayEvent', 'endpoint_ids[0]', { endpoint_ids: ['none'] }],
    ['replayEvent', 'status', { status: 'lost' }],
    ['replayEndpoint', 'since', { since: 'noon' }],
    ['replayEndpoint', 'until', { until: 'noon' }],
    ...['replayDeadLetters', 'discardDeadLetters'].flatMap((name): WrongBody[] => [
      [name, 'filter', {}],
      [name, 'filter.endpoint_id', { filter: { endpoint_id: 'none' } }],
      [name, 'filter.ids[0]', { filter: { ids: ['none'] } }],
      [name, 'filter.since', { filter: { since: 'noon' } }],
      [name, 'filter.reason', { filter: { reason: 'boredom' } }],
      [name, 'filter.type', { filter: { type: 'order.*' } }],
      [name, 'filter.tenant', { filter: { tenant: '' } }],
    ]),
    ['discardDelivery', 'why', { why: 'x'.repeat(501) }],
    ['createKey', 'scope', { scope: 'root' }],
    ['createKey', 'tenant', { scope: 'tenant' }],
    ['createKey', 'rate_limit.per_second', { scope: 'read', rate_limit: { per_second: 0 } }],
    ['putTenant', 'metadata', { metadata: { a: 'x'.repeat(17_000) } }],
    ['putEventType', 'schema.type', { schema: { type: 'thing' } }],
    [
      'putEventType',
      'example.id',
      { schema: { properties: { id: { type: 'string' } } }, example: { id: 1 } },
    ],
    ['checkEventTypeVersion', 'schema.type', { schema: { type: 'thing' } }],
    ['createInbox', 'tenant', { tenant: ' ' }],
    ['updateInbox', 'status', { status: 9 }],
  ];
}

/** Query parameters with a value that no operation accepts. */
export const wrongParameters: Record<string, string> = {
  limit: '0',
  since: 'noon',
  until: 'noon',
  endpoint_id: 'none',
  event_id: 'none',
  status: 'lost',
  outcome: 'lost',
  reason: 'boredom',
  has: 'wings',
  window: '5m',
  tenant: '',
  type: 'order.*',
  action: 'foo',
};
