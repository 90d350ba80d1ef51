/**
 * The fourth round of security attacks: batches, debounce, filters, searches, tasks, portal sessions, notifiers, sign-in,
 * catalogue. `fourth-round.md` lists each of them with its result; the last test compares that list with the titles here.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS } from '../../src/deliver/index.ts';
import { NodeLinks } from '../../src/dispatch/node-links.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { newId } from '../../src/domain/ids.ts';
import { MemoryPeerDirectory } from '../../src/memory/memory-peer-directory.ts';
import { anEndpoint, attempt } from '../support/attempts.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { CLIENT, startProvider } from '../support/identity-provider.ts';
import { openTail } from '../support/live-tail.ts';
import { startMailServer } from '../support/mail-server.ts';
import {
  type Answer,
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

const mail = await startMailServer();
afterAll(() => mail.close());
const port = await freePort();
const provider = await startProvider(`http://127.0.0.1:${port}/auth/callback`);
afterAll(() => provider.close());
const posthorn = usePosthorn({
  inProcess: true,
  env: {
    PORT: String(port),
    POSTHORN_PUBLIC_URL: `http://127.0.0.1:${port}`,
    POSTHORN_OIDC_ISSUER: provider.issuer,
    POSTHORN_OIDC_CLIENT_ID: CLIENT.id,
    POSTHORN_OIDC_CLIENT_SECRET: CLIENT.secret,
    POSTHORN_OIDC_SCOPE: 'openid email groups',
    POSTHORN_OIDC_ADMIN_ROLES: 'ops',
    POSTHORN_OIDC_READ_ROLES: 'support',
    POSTHORN_OIDC_TENANT_CLAIM: 'org',
    POSTHORN_INBOX: 'true',
    POSTHORN_SMTP_URL: mail.url,
    POSTHORN_SMTP_FROM: 'posthorn@sender.test',
    POSTHORN_OPERATIONAL_EVENTS_MS: '30ms',
    POSTHORN_NOTICE_WINDOW_MS: '300ms',
  },
});
const { api } = posthorn;

const titles: string[] = [];
const listed = <T extends readonly [string, ...unknown[]]>(cases: readonly T[]): readonly T[] => {
  titles.push(...cases.map(([title]) => title));
  return cases;
};

/** What the answers to an attacker must not contain. */
const MARK = 'mark-of-the-victim';
type KeyName = keyof typeof keys;
const keys = { tenant: '', read: '', endpoints: '', deliveries: '', events: '', portal: '', admin: '' };
/** `{endpoint}` in a path or body stands for the id of an object of the victim; `{own…}` belong to the attacker. */
const ids: Record<string, string> = { victim: newTenant(), acme: newTenant() };
let receiver: Receiver;

const created = async (path: string, body: unknown): Promise<Answer['body']> => {
  const answer = await api('POST', path, body);
  expect([201, 202], answer.text).toContain(answer.status);
  return answer.body;
};

beforeAll(async () => {
  receiver = await startReceiver();
  const { victim, acme } = ids as { victim: string; acme: string };
  const url = `${receiver.url}/${MARK}`;
  receiver.answer(({ path }) => (path.startsWith('/dead') ? { status: 400 } : {}));
  const failing = {
    tenant: victim,
    url: `${receiver.url}/dead`,
    events: ['dead.*'],
    retry: { schedule: [0] },
  };
  ids.dead_endpoint = (await createEndpoint(posthorn, failing)).id;
  const lost = await publish(posthorn, { tenant: victim, type: 'dead.a', data: { mark: MARK } });
  ids.dead_delivery = (await untilDeliveries(posthorn, lost.id, 'dead'))[0]!.id;
  for (const [who, tenant] of [
    ['', victim],
    ['own_', acme],
  ] as const) {
    const mark = tenant === victim ? MARK : 'own';
    const endpoint = await createEndpoint(posthorn, {
      tenant,
      url: tenant === victim ? url : receiver.url,
      description: mark,
      events: ['a.*'],
      batch: { max_events: 2, max_wait_ms: 10 },
      headers: { 'x-team': 'stored' },
    });
    ids[`${who}endpoint`] = endpoint.id;
    const type = `a.${tenant === victim ? 'victim' : 'own'}`;
    const event = await publish(posthorn, { tenant, type, data: { mark }, idempotency_key: `${mark}-key` });
    ids[`${who}event`] = event.id;
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    ids[`${who}delivery`] = delivery!.id;
    const { body } = await api('GET', `/v1/deliveries/${delivery!.id}/attempts`);
    ids[`${who}batch`] = body.data[0].request_headers['webhook-id'];
    ids[`${who}task`] = (await created(`/v1/endpoints/${endpoint.id}/replay`, { status: 'dead' })).id;
    const notifier = await created('/v1/notifiers', { kind: 'slack', tenant, url: `${url}/secret-path` });
    ids[`${who}notifier`] = notifier.id;
    ids[`${who}notifier_endpoint`] = notifier.endpoint_id;
  }
  const newKey = async (settings: object) => (await created('/v1/keys', { tenant: acme, ...settings })).key;
  keys.tenant = await newKey({ scope: 'tenant' });
  keys.read = await newKey({ scope: 'read' });
  keys.endpoints = await newKey({ scope: 'tenant', scopes: ['endpoints:read', 'endpoints:write'] });
  keys.deliveries = await newKey({ scope: 'tenant', scopes: ['deliveries:read', 'deliveries:replay'] });
  keys.events = await newKey({ scope: 'read', scopes: ['events:read'] });
  const portal = await created('/v1/portal-sessions', { tenant: acme });
  keys.portal = portal.token;
  ids.portal = portal.id;
  keys.admin = posthorn.key;
});
afterAll(() => receiver.close());

const fill = <T>(value: T): T =>
  value === undefined
    ? value
    : (JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (all, name: string) => ids[name] ?? all)) as T);

type Attack = readonly [
  title: string,
  key: KeyName,
  method: string,
  path: string,
  body: unknown,
  statuses: readonly number[],
  check?: (answer: Answer) => unknown,
];

/** Nothing for the attacker, although there is something to select. */
const countsFor =
  (path: string, filter: object) =>
  async ({ body }: Answer): Promise<void> => {
    expect(body.count).toBe(0);
    expect((await api('POST', path, fill({ filter, dry_run: true }))).body.count).toBe(1);
  };
const isEmpty = ({ body }: Answer): void => expect(body.data).toEqual([]);

const attacks: Readonly<Record<string, readonly Attack[]>> = {
  'reading and changing what belongs to others': [
    ['B01 a batch of another tenant', 'tenant', 'GET', '/v1/batches/{batch}', undefined, [404]],
    [
      'B02 the body of a batch of another tenant',
      'tenant',
      'GET',
      '/v1/deliveries/{delivery}/attempts/1/request',
      undefined,
      [404],
    ],
    [
      'B03 the body of its own batch, with a key that may not read events',
      'deliveries',
      'GET',
      '/v1/deliveries/{own_delivery}/attempts/1/request',
      undefined,
      [403],
    ],
    ['X01 a task of another tenant', 'tenant', 'GET', '/v1/tasks/{task}', undefined, [404]],
    ['X02 cancels a task of another tenant', 'tenant', 'POST', '/v1/tasks/{task}/cancel', undefined, [404]],
    ['X03 lists the tasks of another tenant', 'tenant', 'GET', '/v1/tasks?tenant={victim}', undefined, [403]],
    [
      'X04 replays dead letters of another tenant',
      'tenant',
      'POST',
      '/v1/dead-letters/replay',
      { filter: { tenant: '{victim}' } },
      [403],
    ],
    [
      'X05 replays deliveries of another tenant by their ids',
      'tenant',
      'POST',
      '/v1/dead-letters/replay',
      { filter: { ids: ['{dead_delivery}'] }, dry_run: true },
      [200],
      countsFor('/v1/dead-letters/replay', { ids: ['{dead_delivery}'] }),
    ],
    [
      'X06 discards dead letters of the endpoint of another tenant',
      'tenant',
      'POST',
      '/v1/dead-letters/discard',
      { filter: { endpoint_id: '{dead_endpoint}' }, dry_run: true },
      [200],
      countsFor('/v1/dead-letters/discard', { endpoint_id: '{dead_endpoint}' }),
    ],
    [
      'X07 replays an event of another tenant to its own endpoint',
      'tenant',
      'POST',
      '/v1/events/{event}/replay',
      { endpoint_ids: ['{own_endpoint}'] },
      [404],
    ],
    [
      'X08 replays its own event to the endpoint of another tenant',
      'tenant',
      'POST',
      '/v1/events/{own_event}/replay',
      { endpoint_ids: ['{endpoint}'] },
      [422],
    ],
    [
      'X09 expunges the payload of another tenant',
      'tenant',
      'DELETE',
      '/v1/events/{event}/payload',
      undefined,
      [404],
    ],
    ['X10 expunges with a read key', 'read', 'DELETE', '/v1/events/{own_event}/payload', undefined, [403]],
    [
      'X11 expunges with a portal session',
      'portal',
      'DELETE',
      '/v1/events/{own_event}/payload',
      undefined,
      [403],
    ],
    ['X12 expunges its own tenant', 'tenant', 'DELETE', '/v1/tenants/{acme}', { confirm: '{acme}' }, [403]],
    ['X13 restores the archive', 'tenant', 'POST', '/v1/archive/restore', { day: '2026-01-01' }, [403]],
    [
      'X14 a day that leads out of the archive',
      'admin',
      'POST',
      '/v1/archive/restore',
      { day: '../../../etc/x' },
      [422],
    ],
    ['X15 a day that does not exist', 'admin', 'POST', '/v1/archive/restore', { day: '2026-13-45' }, [422]],
    ['X16 reads how much others store', 'tenant', 'GET', '/v1/storage', undefined, [403]],
    [
      'X17 reads the Kafka records that were set aside',
      'tenant',
      'GET',
      '/v1/sources/kafka/rejected',
      undefined,
      [403],
    ],
    [
      'X18 publishes Kafka records that were set aside',
      'tenant',
      'POST',
      '/v1/sources/kafka/rejected/retry',
      {},
      [403],
    ],
    ['X19 reads the positions in Kafka', 'read', 'GET', '/v1/sources', undefined, [403]],
    [
      'X20 reads the audit log of another tenant',
      'tenant',
      'GET',
      '/v1/audit?tenant={victim}',
      undefined,
      [403],
    ],
  ],
  'searches, filters and estimates': [
    [
      'W01 searches the payloads of another tenant',
      'tenant',
      'GET',
      `/v1/events?where=data.mark:${MARK}`,
      undefined,
      [200],
      isEmpty,
    ],
    [
      'W02 names the other tenant in the search',
      'read',
      'GET',
      `/v1/events?tenant={victim}&where=data.mark:${MARK}`,
      undefined,
      [403],
    ],
    [
      'W03 the idempotency key of another tenant',
      'tenant',
      'GET',
      `/v1/events?idempotency_key=${MARK}-key`,
      undefined,
      [200],
      isEmpty,
    ],
    [
      'W04 searches with a key that may only read deliveries',
      'deliveries',
      'GET',
      '/v1/events?where=data.mark:own',
      undefined,
      [403],
    ],
    [
      'W05 a path through a prototype',
      'tenant',
      'GET',
      '/v1/events?where=data.constructor.name:Object',
      undefined,
      [200],
      isEmpty,
    ],
    [
      'W06 two searches at once',
      'tenant',
      'GET',
      '/v1/events?where=data.a:1&where=data.b:2',
      undefined,
      [422],
    ],
    ['W07 a search outside of the payload', 'tenant', 'GET', '/v1/events?where=tenant:x', undefined, [422]],
    [
      'W08 an SQL condition as the value',
      'tenant',
      'GET',
      `/v1/events?where=${encodeURIComponent("data.mark:x' or '1'='1")}`,
      undefined,
      [200],
      isEmpty,
    ],
    [
      'W09 counts the events of another tenant',
      'tenant',
      'POST',
      '/v1/filters/count',
      { filter: null, tenant: '{victim}' },
      [403],
    ],
    [
      'W10 counts payloads with a key that may only read endpoints',
      'endpoints',
      'POST',
      '/v1/filters/count',
      { filter: { 'data.mark': 'own' } },
      [403],
    ],
    [
      'W11 tries a filter as another tenant',
      'tenant',
      'POST',
      '/v1/filters/try',
      { filter: null, event: { tenant: '{victim}', type: 'a.b', data: 1 } },
      [403],
    ],
    [
      'W12 estimates for another tenant',
      'tenant',
      'POST',
      '/v1/shaping/estimate',
      { tenant: '{victim}', batch: {} },
      [403],
    ],
    [
      'W13 estimates with a key that may only read endpoints',
      'endpoints',
      'POST',
      '/v1/shaping/estimate',
      { batch: {} },
      [403],
    ],
    [
      'W14 a debounce key through a prototype',
      'tenant',
      'POST',
      '/v1/shaping/estimate',
      { debounce: { key: 'data.constructor.name', window_ms: 60_000 } },
      [200],
      ({ body }) => expect(body.requests).toBe(body.events),
    ],
    [
      'W15 a debounce key of 17 names',
      'tenant',
      'POST',
      '/v1/shaping/estimate',
      { debounce: { key: `data${'.a'.repeat(17)}`, window_ms: 1 } },
      [422],
    ],
    [
      'W16 a batch of a billion events',
      'tenant',
      'POST',
      '/v1/shaping/estimate',
      { batch: { max_events: 1e9, max_bytes: 1e12 } },
      [422],
    ],
    [
      'W17 previews the payload of another tenant',
      'tenant',
      'POST',
      '/v1/endpoints/{own_endpoint}/preview',
      { api_version: 'v1', event_id: '{event}' },
      [422],
    ],
  ],
  'portal sessions and narrow keys': [
    [
      'S01 a portal session creates another one',
      'portal',
      'POST',
      '/v1/portal-sessions',
      { tenant: '{acme}' },
      [403],
    ],
    [
      'S02 a portal session creates a key',
      'portal',
      'POST',
      '/v1/keys',
      { scope: 'tenant', tenant: '{acme}' },
      [403],
    ],
    ['S03 a portal session widens itself', 'portal', 'PATCH', '/v1/keys/{portal}', { scopes: null }, [403]],
    ['S04 an admin widens it like a key', 'admin', 'PATCH', '/v1/keys/{portal}', { scopes: null }, [404]],
    ['S05 a portal session publishes', 'portal', 'POST', '/v1/events', { type: 'a.b', data: 1 }, [403]],
    [
      'S06 a portal session reads a secret',
      'portal',
      'GET',
      '/v1/endpoints/{own_endpoint}/secret',
      undefined,
      [403],
    ],
    [
      'S07 a portal session lists another tenant',
      'portal',
      'GET',
      '/v1/endpoints?tenant={victim}',
      undefined,
      [403],
    ],
    ['S08 a portal session creates an inbox', 'portal', 'POST', '/v1/inboxes', {}, [403]],
    [
      'S09 a portal session for the operator',
      'admin',
      'POST',
      '/v1/portal-sessions',
      { tenant: 'posthorn' },
      [422],
    ],
    [
      'S10 a portal session for a year',
      'admin',
      'POST',
      '/v1/portal-sessions',
      { tenant: '{acme}', ttl_seconds: 31_536_000 },
      [422],
    ],
    [
      'S11 markup as the colour of a portal',
      'admin',
      'POST',
      '/v1/portal-sessions',
      { tenant: '{acme}', appearance: { accent: '#fff"><script>' } },
      [422],
    ],
    [
      'S12 more scopes than a read key may have',
      'admin',
      'POST',
      '/v1/keys',
      { scope: 'read', tenant: '{acme}', scopes: ['secrets:read'] },
      [422],
    ],
    ['S13 a narrow key opens the live tail', 'deliveries', 'GET', '/v1/stream', undefined, [403]],
    ['S14 a narrow key reads the statistics', 'events', 'GET', '/v1/stats', undefined, [403]],
    [
      'S15 a key without secrets:read sends stored headers to another URL',
      'endpoints',
      'PATCH',
      '/v1/endpoints/{own_endpoint}',
      { url: 'https://example.com/' },
      [422],
    ],
  ],
  notifiers: [
    ['N01 a notifier of another tenant', 'tenant', 'GET', '/v1/notifiers/{notifier}', undefined, [404]],
    [
      'N02 deletes a notifier of another tenant',
      'tenant',
      'DELETE',
      '/v1/notifiers/{notifier}',
      undefined,
      [404],
    ],
    [
      'N03 tests a notifier of another tenant',
      'tenant',
      'POST',
      '/v1/notifiers/{notifier}/test',
      undefined,
      [404],
    ],
    [
      'N04 a read key reads the path of a chat',
      'read',
      'GET',
      '/v1/notifiers/{own_notifier}',
      undefined,
      [200],
      ({ text }) => expect(text).not.toContain('secret-path'),
    ],
    [
      'N05 a portal session reads the path of a chat',
      'portal',
      'GET',
      '/v1/notifiers/{own_notifier}',
      undefined,
      [200],
      ({ text }) => expect(text).not.toContain('secret-path'),
    ],
    [
      'N06 notices about all tenants',
      'tenant',
      'POST',
      '/v1/notifiers',
      { kind: 'slack', url: 'https://hooks.slack.com/x', operator: true },
      [403],
    ],
    [
      'N07 a chat at the metadata service',
      'tenant',
      'POST',
      '/v1/notifiers',
      { kind: 'slack', url: 'http://169.254.169.254/latest' },
      [422],
    ],
    [
      'N08 a chat that is a file',
      'tenant',
      'POST',
      '/v1/notifiers',
      { kind: 'slack', url: 'file:///etc/passwd' },
      [422],
    ],
    [
      'N09 a chat that is an e-mail address',
      'tenant',
      'POST',
      '/v1/notifiers',
      { kind: 'slack', url: 'mailto:a@b.test' },
      [422],
    ],
    ...(
      [
        ['N10 a line break in an e-mail address', 'a@b.test\r\nBcc: c@d.test'],
        ['N11 two e-mail addresses', 'a@b.test,c@d.test'],
        ['N12 a name around an e-mail address', '"x" <a@b.test>'],
        ['N13 an option of a mail program as an e-mail address', '-oQ/tmp@b.test -X/x'],
        ['N14 an e-mail address at an IP address', 'a@[169.254.169.254]'],
      ] as const
    ).map(
      ([title, address]) =>
        [title, 'tenant', 'POST', '/v1/notifiers', { kind: 'email', address }, [422]] as const,
    ),
    [
      'N15 a notifier as an endpoint',
      'tenant',
      'GET',
      '/v1/endpoints/{own_notifier_endpoint}/secret',
      undefined,
      [404],
    ],
    [
      'N16 a notifier sent elsewhere, as an endpoint',
      'tenant',
      'PATCH',
      '/v1/endpoints/{own_notifier_endpoint}',
      { url: 'https://example.com/' },
      [404],
    ],
    [
      'N17 its own text through a notifier',
      'tenant',
      'POST',
      '/v1/events',
      { type: 'a.b', data: 1, endpoint_ids: ['{own_notifier_endpoint}'] },
      [422],
    ],
    [
      'N18 a notice as an event of a producer',
      'tenant',
      'POST',
      '/v1/events',
      { type: 'posthorn.notice', data: { groups: [] } },
      [422],
    ],
  ],
  catalogue: [
    ['V01 a tenant changes the catalogue', 'tenant', 'PUT', '/v1/event-types/a.own', { schema: {} }, [403]],
    [
      'V02 failures of another tenant',
      'tenant',
      'GET',
      '/v1/event-types/a.victim/failures?tenant={victim}',
      undefined,
      [403],
    ],
    [
      'V03 a schema that is fetched from an internal address',
      'admin',
      'PUT',
      '/v1/event-types/v.ref',
      { schema: { $ref: 'http://169.254.169.254/schema.json' } },
      [422],
    ],
    [
      'V04 a schema that is a file',
      'admin',
      'PUT',
      '/v1/event-types/v.ref',
      { schema: { properties: { a: { $ref: 'file:///etc/passwd' } } } },
      [422],
    ],
    [
      'V05 a schema that refers to itself without end',
      'admin',
      'PUT',
      '/v1/event-types/v.ref',
      { schema: { $ref: '#' } },
      [422],
    ],
    [
      'V06 a schema with a pattern that would backtrack',
      'admin',
      'PUT',
      '/v1/event-types/v.pattern',
      { schema: { type: 'string', pattern: '^(?=(a+)+$)' } },
      [422],
    ],
    [
      'V07 a dynamic reference',
      'admin',
      'PUT',
      '/v1/event-types/v.ref',
      { schema: { $dynamicRef: '#x' } },
      [422],
    ],
    [
      'V08 pins of others',
      'tenant',
      'GET',
      '/v1/event-types/a.victim/pins?tenant={victim}',
      undefined,
      [403],
    ],
  ],
};

describe.each(Object.entries(attacks))('%s', (_what, cases) => {
  it.each(listed(cases).map((attack) => [attack[0], attack] as const))('%s', async (_title, attack) => {
    const [, key, method, path, body, statuses, check] = attack;
    const answer = await api(method, fill(path), fill(body), { key: keys[key] });
    expect(statuses, `${answer.status} ${answer.text}`).toContain(answer.status);
    // A route that does not exist would prove nothing.
    expect(answer.text).not.toMatch(/There is no (GET|POST|PUT|PATCH|DELETE) /);
    if (key !== 'admin') expect(answer.text).not.toContain(MARK);
    await check?.(answer);
  });
});

describe('the sign-in', () => {
  const open = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    api(method, path, undefined, { key: null, headers });

  const callbacks: readonly (readonly [title: string, path: string, cookie: string])[] = [
    ['O01 a callback that nobody started', '/auth/callback?code=x&state=y', ''],
    ['O02 a callback with an invented cookie', '/auth/callback?code=x&state=y', 'posthorn_sign_in=a.b'],
    [
      'O03 markup in the error of the identity provider',
      '/auth/callback?error=access_denied&error_description=%3Cscript%3E',
      '',
    ],
    [
      'O04 a line break in the error of the identity provider',
      '/auth/callback?error=x%0d%0aset-cookie:a=b&state=y',
      'posthorn_sign_in=a.b',
    ],
  ];
  it.each(listed(callbacks))('%s', async (_title, path, cookie) => {
    const { status, headers, text } = await open(path, cookie === '' ? {} : { cookie });
    expect([status, headers.location]).toEqual([302, '/console?sign_in_error=expired']);
    expect(String(headers['set-cookie'])).toMatch(/^posthorn_sign_in=; Max-Age=0;[^,]*$/);
    expect(text).not.toContain('script');
  });

  const returns: readonly (readonly [title: string, returnTo: string])[] = [
    ['O05 a return to another site, with a line break', '/console\r\nlocation: https://evil.test'],
    ['O06 a return to another site, with a tab', '/console/\t/evil.test'],
    ['O07 a return to another site, with a fragment', '/console#@evil.test'],
    ['O08 a return to another page of this site', '/docs'],
  ];
  it.each(listed(returns))('%s', async (_title, returnTo) => {
    provider.signInAs('ann', { groups: ['ops'], email: 'ann@example.test' });
    const { cookies, location } = await signIn(returnTo);
    expect(location).toBe('/console');
    expect(cookies).toMatch(/posthorn_session=/);
  });

  /** Follows the redirects of the identity provider. Returns the cookies of Posthorn and where its last answer leads. */
  async function signIn(returnTo = '/console'): Promise<{ cookies: string; location: string }> {
    const jars = new Map<string, Map<string, string>>();
    let url = `${posthorn.url}/auth/login?return_to=${encodeURIComponent(returnTo)}`;
    for (let hops = 0; hops < 10; hops += 1) {
      const { host } = new URL(url);
      const jar = jars.get(host) ?? new Map<string, string>();
      jars.set(host, jar);
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const answer = await fetch(url, { headers: { cookie }, redirect: 'manual' });
      for (const line of answer.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
        jar.set(name!, value!);
      }
      const location = answer.headers.get('location')!;
      if (url.includes('/auth/callback')) {
        const cookies = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
        return { cookies, location };
      }
      url = new URL(location, url).href;
    }
    throw new Error('The sign-in does not end.');
  }

  const claims: readonly (readonly [title: string, claims: Record<string, unknown>])[] = [
    ['O09 a person of no tenant asks for all', { groups: ['support'] }],
    ['O10 a person of several tenants', { groups: ['support'], org: ['acme', 'other'] }],
    ['O11 a person of the operator tenant', { groups: ['support'], org: 'posthorn' }],
    ['O12 a tenant that is a path', { groups: ['support'], org: '../acme' }],
    ['O13 a role inside a text of roles', { groups: 'support,ops', org: 'acme' }],
  ];
  it.each(listed(claims))('%s', async (_title, given) => {
    provider.signInAs('mallory', given);
    const { cookies, location } = await signIn();
    expect(location).toBe('/console?sign_in_error=no_role');
    expect(cookies).not.toMatch(/posthorn_session=/);
  });

  const sessions: readonly (readonly [title: string])[] = [
    ['O14 the CSRF value of another session'],
    ['O15 two session cookies'],
    ['O16 an invented session'],
    ['O17 a sign-out by a link'],
    ['O18 markup and control characters in the name of a person'],
  ];
  const [O14, O15, O16, O17, O18] = listed(sessions).map(([title]) => title);
  const startSession = async (name: string) => {
    provider.signInAs(name, { groups: ['ops'], email: name });
    const { cookies } = await signIn();
    const { body } = await open('/auth/session', { cookie: cookies });
    return { cookies, ...(body.session as { name: string; csrf_token: string }) };
  };
  it(O14!, async () => {
    const [one, other] = [await startSession('one'), await startSession('other')];
    const headers = { cookie: one.cookies, 'x-posthorn-csrf': other.csrf_token };
    expect((await open('/v1/events', headers)).status).toBe(403);
    expect((await open('/v1/events', { ...headers, 'x-posthorn-csrf': one.csrf_token })).status).toBe(200);
  });
  it(O15!, async () => {
    const { cookies, csrf_token } = await startSession('one');
    const headers = { cookie: `${cookies}; posthorn_session=x`, 'x-posthorn-csrf': csrf_token };
    expect((await open('/v1/events', headers)).status).toBe(401);
  });
  it(O16!, async () => {
    const cookie = `posthorn_session=phs_${'a'.repeat(47)}`;
    expect((await open('/v1/events', { cookie, 'x-posthorn-csrf': 'x' })).status).toBe(401);
    expect((await open('/auth/session', { cookie })).body.session).toBeNull();
  });
  it(O17!, async () => {
    const { cookies, csrf_token } = await startSession('one');
    expect([404, 405]).toContain((await open('/auth/logout', { cookie: cookies })).status);
    expect((await open('/auth/logout', { cookie: cookies }, 'POST')).status).toBe(403);
    const headers = { cookie: cookies, 'x-posthorn-csrf': csrf_token };
    expect((await open('/v1/events', headers)).status).toBe(200);
  });
  it(O18!, async () => {
    const { cookies, name, csrf_token } = await startSession('<img src=x onerror=alert(1)>\u0001\u202e');
    expect(name).toContain('<img');
    const answer = await open('/auth/session', { cookie: cookies });
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    expect((await open('/v1/keys/current', { cookie: cookies, 'x-posthorn-csrf': csrf_token })).status).toBe(
      200,
    );
  });
});

describe('messages of notifiers', () => {
  const [N19, N20, N21, N22] = listed([
    ['N19 mentions, links and line breaks in a description, in a chat'],
    ['N20 other headers by a description, in an e-mail'],
    ['N21 an altered link of a confirmation'],
    ['N22 a link of a confirmation that a program opens'],
  ]).map(([title]) => title);
  const description = '<!channel> @everyone [x](https://evil.test)\r\n\r\nBcc: a@evil.test';
  const cause = async (tenant: string): Promise<void> => {
    const { id } = await createEndpoint(posthorn, { tenant, url: receiver.url, description });
    await api('PATCH', `/v1/endpoints/${id}`, { enabled: false });
  };
  it(N19!, async () => {
    const tenant = newTenant();
    const chat = await newReceiver();
    await created('/v1/notifiers', { kind: 'slack', tenant, url: chat.url });
    await cause(tenant);
    const [message] = await chat.waitFor(1);
    const { text } = message!.json() as { text: string };
    expect(text).toContain('&lt;!channel&gt;');
    expect(text).not.toMatch(/<!|@everyone|\]\(|<https:\/\/evil/);
    expect(text.split('\n')).toHaveLength(2);
  });
  it(`${N20}; ${N21}; ${N22}`, async () => {
    const tenant = newTenant();
    const address = `${tenant}@mail.test`;
    await created('/v1/notifiers', { kind: 'email', tenant, address });
    const [asked] = await mail.waitFor(1, address);
    const link = new URL(/http\S+confirm\S+/.exec(asked!.text)![0]);
    const path = `${link.pathname}${link.search}`;
    const confirm = (method: string, at: string) => api(method, at, undefined, { key: null });
    for (const altered of [
      path.slice(0, -2),
      `${path}AA`,
      path.replace('token=', 'token=x'),
      path.replace(/token=.*/, 'token='),
      `${path}&token=x`,
    ])
      expect((await confirm('POST', altered)).status).toBe(410);
    expect((await confirm('GET', path)).status).toBe(200);
    expect((await confirm('HEAD', path)).status).toBe(200);
    const listedNotifiers = await api('GET', `/v1/notifiers?tenant=${tenant}`);
    expect(listedNotifiers.body.data[0].status).toBe('unconfirmed');
    expect((await confirm('POST', path)).status).toBe(200);
    expect((await confirm('POST', path)).status).toBe(410);
    await cause(tenant);
    const [, notice] = await mail.waitFor(2, address);
    expect(notice!.to).toEqual([address]);
    expect(Object.keys(notice!.headers)).not.toContain('bcc');
    expect(notice!.text).toContain('Bcc: a@evil.test');
    expect(notice!.text).not.toContain('https://evil.test');
    expect(notice!.text).not.toMatch(/^Bcc/m);
  });
});

describe('the live tail', () => {
  const [L01, L02] = listed([
    ['L01 line breaks in texts, to forge messages'],
    ['L02 a filter by the endpoint of another tenant'],
  ]).map(([title]) => title);
  it(L01!, async () => {
    const tail = await openTail(posthorn, `tenant=${ids.acme}`);
    await tail.find('ready', ({ event }) => event === 'ready');
    const key = `x\u2028event: forged\u2028data: {}`;
    const answer = await api(
      'POST',
      '/v1/events',
      { tenant: ids.acme, type: 'a.own', data: '\n\nevent: forged\ndata: {}\n\n' },
      { headers: { 'idempotency-key': encodeURIComponent(key) } },
    );
    expect(answer.status).toBe(202);
    await tail.find(
      'the event',
      ({ data }) => data.event_id === answer.body.id || data.id === answer.body.id,
    );
    expect(tail.shown.filter(({ event }) => event === 'forged')).toEqual([]);
  });
  it(L02!, async () => {
    const tail = await openTail(posthorn, `endpoint_id=${ids.endpoint}`, { key: keys.tenant });
    await tail.find('ready', ({ event }) => event === 'ready');
    await publish(posthorn, { tenant: ids.victim!, type: 'a.victim', data: { mark: MARK } });
    await publish(posthorn, { tenant: ids.acme!, type: 'a.own', data: 1 });
    const own = await openTail(posthorn, '', { key: keys.tenant });
    await own.find('ready', ({ event }) => event === 'ready');
    const { id } = await publish(posthorn, { tenant: ids.acme!, type: 'a.own', data: 2 });
    await own.find('its own event', ({ data }) => JSON.stringify(data).includes(id));
    expect(JSON.stringify(tail.shown)).not.toMatch(new RegExp(`${MARK}|${ids.victim}`));
    expect(JSON.stringify(own.shown)).not.toMatch(new RegExp(`${MARK}|${ids.victim}`));
  });
});

describe('answers of hostile token endpoints and receivers of batches', () => {
  const deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    responseCapBytes: 16_384,
    clock: systemClock,
  });
  afterAll(() => deliverer.close());
  const tokenCases: readonly (readonly [title: string, body: string])[] = [
    ['T01 a token with a line break', JSON.stringify({ access_token: 'a\r\nx-evil: 1' })],
    ['T02 a token of 60 KiB', JSON.stringify({ access_token: 'a'.repeat(60_000) })],
    ['T03 a token that is an object', JSON.stringify({ access_token: { toString: 'x' } })],
    ['T04 a token of another type', JSON.stringify({ access_token: 'a', token_type: 'MAC' })],
    ['T05 60,000 brackets', '['.repeat(60_000)],
    ['T06 an error with a secret in it', JSON.stringify({ error: 'x', error_description: MARK })],
    ['T07 a prototype as the answer', '{"__proto__":{"access_token":"a"}}'],
  ];
  it.each(listed(tokenCases))('%s', async (title, body) => {
    const [hook, tokens] = [await newReceiver(), await newReceiver()];
    tokens.answer({ status: title.startsWith('T06') ? 400 : 200, body });
    const auth = {
      type: 'oauth2',
      tokenUrl: tokens.url,
      clientId: 'a',
      clientSecret: 'b',
      scope: null,
    } as const;
    const outcome = await attempt(deliverer, anEndpoint(hook.url, { id: newId(Date.now()), auth }));
    expect(outcome.error?.class).toBe('oauth_failed');
    expect(JSON.stringify(outcome)).not.toContain(MARK);
    expect(hook.requests).toHaveLength(0);
  });

  const batchCases: readonly (readonly [
    title: string,
    body: (victim: string) => string,
    retried: boolean,
  ])[] = [
    [
      'B04 a batch result that names events of another tenant',
      (id) => JSON.stringify({ failed: [id] }),
      false,
    ],
    ['B05 a batch result of 15,000 brackets', () => '['.repeat(15_000), true],
    ['B06 a batch result that is not a list', () => '{"failed":{"length":1}}', true],
    [
      'B07 a batch result with 400 invented ids',
      () => JSON.stringify({ failed: Array.from({ length: 400 }, (_, n) => `evt_${n}`) }),
      false,
    ],
  ];
  it.each(listed(batchCases))('%s', async (_title, body, isRetried) => {
    const tenant = newTenant();
    const batches = await newReceiver();
    batches.answer(({ index }) =>
      index > 0
        ? {}
        : {
            headers: { 'content-type': 'application/vnd.posthorn.batch-result+json' },
            body: body(ids.event!),
          },
    );
    await createEndpoint(posthorn, {
      tenant,
      url: batches.url,
      batch: { max_events: 2, max_wait_ms: 0 },
      retry: { schedule: [0, 0] },
    });
    const { id } = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, id, 'delivered');
    expect(delivery!.attempts).toBe(isRetried ? 2 : 1);
    const victim = await api('GET', `/v1/deliveries/${ids.delivery}`);
    expect(victim.body).toMatchObject({ status: 'delivered', attempts: 1 });
  });
});

describe('the listener for other nodes', () => {
  const cases: readonly (readonly [title: string, options: tls.ConnectionOptions])[] = [
    ['P01 TLS 1.3', { minVersion: 'TLSv1.3' }],
    ['P02 a cipher without a key', { maxVersion: 'TLSv1.2', ciphers: 'aNULL:eNULL:@SECLEVEL=0' }],
    [
      'P03 a pre-shared key without forward secrecy',
      {
        maxVersion: 'TLSv1.2',
        ciphers: 'PSK-AES128-CBC-SHA:@SECLEVEL=0',
        pskCallback: () => ({ psk: Buffer.alloc(32, 1), identity: 'one' }),
      },
    ],
    [
      'P04 the encryption key itself as the pre-shared key',
      {
        maxVersion: 'TLSv1.2',
        ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
        pskCallback: () => ({ psk: Buffer.alloc(32, 1), identity: 'one' }),
      },
    ],
    [
      'P05 an empty identity',
      {
        maxVersion: 'TLSv1.2',
        ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
        pskCallback: () => ({ psk: Buffer.alloc(32), identity: '' }),
      },
    ],
  ];
  it.each(listed(cases))('%s', async (_title, options) => {
    const directory = new MemoryPeerDirectory();
    let connected = 0;
    const links = new NodeLinks({
      id: newId(Date.now()),
      node: 'a',
      host: '127.0.0.1',
      listenHost: '127.0.0.1',
      port: 0,
      keys: new Map([['one', Buffer.alloc(32, 1)]]),
      directory,
      clock: systemClock,
      onProblem: () => {},
    });
    await links.start(() => {
      connected += 1;
    });
    try {
      const address = await eventually('it has announced its address', async () =>
        (await directory.announce({ id: newId(0), node: 'x', host: '', port: 0, wireVersion: 1 })).find(
          ({ port: announced }) => announced > 0,
        ),
      );
      const socket = tls.connect({
        ...options,
        host: '127.0.0.1',
        port: address.port,
        rejectUnauthorized: false,
      });
      const [error] = (await once(socket, 'error')) as [Error];
      expect(error.message).not.toBe('');
      expect(socket.getPeerFinished()).toBeUndefined();
      expect(connected).toBe(0);
    } finally {
      await links.stop();
    }
  });
});

it('fourth-round.md lists exactly these attacks', async () => {
  const list = await readFile(new URL('./fourth-round.md', import.meta.url), 'utf8');
  const written = [...list.matchAll(/^\| ([A-Z]\d\d .*?) \|/gm)].map(([, title]) => title);
  expect(written.sort()).toEqual(titles.sort());
});
