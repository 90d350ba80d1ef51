/** Signing in to the console with OpenID Connect, against a real provider. */

import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { CLIENT, startProvider, type TestProvider } from '../support/identity-provider.ts';
import { type CallOptions, expectStatus, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';

let database: TestDatabase;
let provider: TestProvider;
let posthorn: TestPosthorn;

beforeAll(async () => {
  database = await createTestDatabase();
  const port = await freePort();
  provider = await startProvider(`http://127.0.0.1:${port}/auth/callback`);
  posthorn = await startTestPosthorn({
    database,
    inProcess: true,
    env: {
      PORT: String(port),
      POSTHORN_ROLE: 'api',
      POSTHORN_PUBLIC_URL: `http://127.0.0.1:${port}`,
      POSTHORN_OIDC_ISSUER: provider.issuer,
      POSTHORN_OIDC_CLIENT_ID: CLIENT.id,
      POSTHORN_OIDC_CLIENT_SECRET: CLIENT.secret,
      POSTHORN_OIDC_SCOPE: 'openid email groups',
      POSTHORN_OIDC_ADMIN_ROLES: 'ops',
      POSTHORN_OIDC_TENANT_ROLES: 'owner',
      POSTHORN_OIDC_READ_ROLES: 'support',
      POSTHORN_OIDC_TENANT_CLAIM: 'org',
    },
  });
});
afterAll(async () => {
  await posthorn?.stop();
  await provider?.close();
  await database?.drop();
});

/** A browser without scripts: keeps cookies by host and follows redirects. */
class Browser {
  readonly cookies = new Map<string, string>();
  readonly setCookies: string[] = [];

  async get(url: string): Promise<Response> {
    const { host } = new URL(url);
    const cookie = [...this.cookies]
      .filter(([name]) => name.startsWith(`${host} `))
      .map(([name, value]) => `${name.split(' ')[1]}=${value}`)
      .join('; ');
    const answer = await fetch(url, { headers: { cookie }, redirect: 'manual' });
    for (const line of answer.headers.getSetCookie()) {
      this.setCookies.push(line);
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (value === '') this.cookies.delete(`${host} ${name}`);
      else this.cookies.set(`${host} ${name}`, value!);
    }
    return answer;
  }

  /** Follows redirects until an address that starts with `until`. Returns all addresses. */
  async follow(url: string, until: string): Promise<string[]> {
    const visited = [url];
    while (!visited.at(-1)!.startsWith(until)) {
      const answer = await this.get(visited.at(-1)!);
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`${visited.at(-1)}: ${answer.status} ${await answer.text()}`);
      visited.push(new URL(location, visited.at(-1)).href);
    }
    return visited;
  }

  get session(): string | undefined {
    return this.cookies.get(`${new URL(posthorn.url).host} posthorn_session`);
  }
}

async function signIn(subject: string, claims: Record<string, unknown>, returnTo = '/console') {
  provider.signInAs(subject, { email: `${subject}@example.com`, ...claims });
  const browser = new Browser();
  const start = `${posthorn.url}/auth/login?return_to=${encodeURIComponent(returnTo)}`;
  const visited = await browser.follow(start, `${posthorn.url}/console`);
  return { browser, visited };
}

/** Calls the API as the console does. */
async function asPerson(browser: Browser) {
  const answer = await browser.get(`${posthorn.url}/auth/session`);
  const { session } = (await answer.json()) as { session: { name: string; csrf_token: string } | null };
  const headers = {
    cookie: `posthorn_session=${browser.session}`,
    'x-posthorn-csrf': session?.csrf_token ?? '',
  };
  return {
    session,
    headers,
    call: (method: string, path: string, body?: unknown, more: CallOptions['headers'] = {}) =>
      posthorn.api(method, path, body, { key: null, headers: { ...headers, ...more } }),
  };
}

describe('signing in', () => {
  test('an admin signs in with code and PKCE, and uses the API with a cookie that scripts cannot read', async () => {
    const { browser, visited } = await signIn('ann', { groups: ['ops', 'x'] }, '/console/events?type=a.b');
    const asked = new URL(visited[1]!).searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: 'code',
      client_id: CLIENT.id,
      redirect_uri: `${posthorn.url}/auth/callback`,
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/.{20}/),
      nonce: expect.stringMatching(/.{20}/),
    });
    expect(visited.at(-1)).toBe(`${posthorn.url}/console/events?type=a.b`);
    const cookie = browser.setCookies.find((line) => line.startsWith('posthorn_session='))!;
    expect(cookie).toMatch(/; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/);

    const { session, call } = await asPerson(browser);
    expect(session!.name).toBe('ann@example.com');
    const { body } = await expectStatus(call('GET', '/v1/keys/current'), 200);
    expect(body).toMatchObject({ id: null, scope: 'admin', tenant: null, user: 'ann@example.com' });
    await expectStatus(call('PUT', '/v1/tenants/acme', { name: 'Acme' }), 201);
    const { body: audit } = await expectStatus(call('GET', '/v1/audit?actor=user:ann'), 200);
    expect(audit.data).toMatchObject([
      { action: 'tenant.create', actor: { id: 'user:ann', prefix: 'ann@example.com', scope: 'admin' } },
      { action: 'session.create' },
    ]);
    // Only the hash of the token is stored.
    const stored = JSON.stringify(
      await database.query('select to_jsonb(s) from posthorn.console_sessions s'),
    );
    expect(stored).not.toContain(browser.session);
  });

  test('roles come from claims: one tenant, read only, or nothing', async () => {
    const { call: asOwner } = await asPerson(
      (await signIn('ben', { groups: ['owner'], org: 'acme' })).browser,
    );
    expect((await asOwner('GET', '/v1/keys/current')).body).toMatchObject({
      scope: 'tenant',
      tenant: 'acme',
    });
    await expectStatus(asOwner('GET', '/v1/events?tenant=other'), 403);
    await expectStatus(asOwner('GET', '/v1/keys'), 403);
    const { call: asReader } = await asPerson(
      (await signIn('cat', { groups: 'support', org: 'acme' })).browser,
    );
    await expectStatus(asReader('GET', '/v1/events'), 200);
    await expectStatus(asReader('POST', '/v1/endpoints', { url: 'https://example.com/' }), 403);
    for (const claims of [
      {},
      { groups: ['else'] },
      { groups: ['owner'] },
      { groups: ['owner'], org: 'posthorn' },
    ]) {
      const { browser, visited } = await signIn('dan', claims);
      expect(visited.at(-1)).toBe(`${posthorn.url}/console?sign_in_error=no_role`);
      expect(browser.session).toBeUndefined();
    }
  });

  test('signing out ends the session', async () => {
    const { browser } = await signIn('eve', { groups: ['ops'] });
    const { call, headers } = await asPerson(browser);
    await expectStatus(call('POST', '/auth/logout', undefined, { 'x-posthorn-csrf': 'wrong' }), 403);
    await expectStatus(call('GET', '/v1/keys'), 200);
    const ended = await expectStatus(call('POST', '/auth/logout'), 204);
    expect(String(ended.headers['set-cookie'])).toMatch(/^posthorn_session=; Max-Age=0;/);
    await expectStatus(posthorn.api('GET', '/v1/keys', undefined, { key: null, headers }), 401);
    expect((await asPerson(browser)).session).toBeNull();
  });

  test('SEC-4: signing in and out are in the audit log', async () => {
    const { browser } = await signIn('ivy', { groups: 'support', org: 'acme' });
    await expectStatus((await asPerson(browser)).call('POST', '/auth/logout'), 204);
    const { body } = await expectStatus(posthorn.api('GET', '/v1/audit?actor=user:ivy'), 200);
    const entry = {
      tenant: 'acme',
      actor: { id: 'user:ivy', prefix: 'ivy@example.com', scope: 'read' },
      object: { type: 'session', id: null },
      address: '127.0.0.1',
    };
    expect(body.data).toMatchObject([
      { action: 'session.delete', ...entry },
      { action: 'session.create', ...entry },
    ]);
  });

  test('an idempotent request of a person is identified under the token of the session', async () => {
    const { browser } = await signIn('hal', { groups: ['ops'] });
    const { call } = await asPerson(browser);
    const body = { scope: 'read' };
    const first = await expectStatus(call('POST', '/v1/keys', body, { 'idempotency-key': 'of-hal' }), 201);
    const again = await expectStatus(call('POST', '/v1/keys', body, { 'idempotency-key': 'of-hal' }), 201);
    expect(again.body.id).toBe(first.body.id);
    const [stored] = await database.query(
      "select fingerprint from posthorn.idempotent_requests where key = 'of-hal'",
    );
    const expected = createHmac('sha256', browser.session!)
      .update(`POST /v1/keys\n${JSON.stringify(body)}`)
      .digest('hex');
    expect(stored!.fingerprint.toString('hex')).toBe(expected);
  });

  test('an expired session is refused', async () => {
    const { call } = await asPerson((await signIn('fay', { groups: ['ops'] })).browser);
    await expectStatus(call('GET', '/v1/keys'), 200);
    await database.query("update posthorn.console_sessions set expires_at = now() where subject = 'fay'");
    // Clears the cache of sessions, as a sign-out elsewhere does.
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'read' });
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${body.id}`), 204);
    const { body: refused } = await expectStatus(call('GET', '/v1/keys'), 401);
    expect(refused.detail).toContain('Sign in again');
  });

  test('keys keep working, also beside a cookie', async () => {
    const { headers } = await asPerson((await signIn('gil', { groups: 'support', org: 'acme' })).browser);
    const { body } = await expectStatus(posthorn.api('GET', '/v1/keys/current', undefined, { headers }), 200);
    expect(body).toMatchObject({ scope: 'admin', user: null });
    await expectStatus(posthorn.api('GET', '/v1/events', undefined, { key: 'phk_wrong', headers }), 401);
  });
});

describe('attacks on the sign-in', () => {
  test('a request that another site makes a browser send is refused', async () => {
    const { call, headers } = await asPerson((await signIn('ann', { groups: ['ops'] })).browser);
    const { cookie } = headers;
    for (const forged of [
      { cookie },
      { cookie, 'x-posthorn-csrf': 'guess' },
      { cookie, 'x-posthorn-csrf': '' },
      { ...headers, 'sec-fetch-site': 'cross-site' },
      { ...headers, 'sec-fetch-site': 'same-site' },
    ]) {
      for (const [method, path] of [
        ['POST', '/v1/events'],
        ['GET', '/v1/events'],
        ['DELETE', '/v1/tenants/acme'],
      ] as const)
        await expectStatus(posthorn.api(method, path, undefined, { key: null, headers: forged }), 403);
    }
    await expectStatus(call('GET', '/v1/events', undefined, { 'sec-fetch-site': 'same-origin' }), 200);
    await expectStatus(
      posthorn.api('GET', '/v1/events', undefined, { key: null, headers: { cookie: 'posthorn_session=x' } }),
      401,
    );
  });

  test('a callback needs the cookie, the state and the nonce of its own start, and a code works once', async () => {
    const callback = async (browser: Browser, url: string) =>
      new URL((await browser.get(url)).headers.get('location')!, posthorn.url).search;
    provider.signInAs('mallory', { groups: ['ops'] });
    const victim = new Browser();
    await victim.get(`${posthorn.url}/auth/login`);
    const attacker = new Browser();
    const address = (await attacker.follow(`${posthorn.url}/auth/login`, `${posthorn.url}/auth/callback`)).at(
      -1,
    )!;
    // The code of another person, without a started sign-in and with one.
    expect(await callback(new Browser(), address)).toBe('?sign_in_error=expired');
    expect(await callback(victim, address)).toBe('?sign_in_error=failed');
    expect(victim.session).toBeUndefined();
    expect(await callback(attacker, address)).toBe('');
    expect(attacker.session).toBeDefined();
    expect(await callback(attacker, address)).toBe('?sign_in_error=expired');
    // The cookie of a sign-in that has ended, kept by the browser in spite of the answer.
    const started = new Browser();
    const own = (await started.follow(`${posthorn.url}/auth/login`, `${posthorn.url}/auth/callback`)).at(-1)!;
    const kept = [...started.cookies];
    expect(await callback(started, own)).toBe('');
    for (const [name, value] of kept) started.cookies.set(name, value);
    expect(await callback(started, own)).toBe('?sign_in_error=expired');
    const forged = new Browser();
    forged.cookies.set(`${new URL(posthorn.url).host} posthorn_sign_in`, 'a.b');
    expect(await callback(forged, address)).toBe('?sign_in_error=expired');
  });

  test.each([
    'https://evil.example/',
    '//evil.example',
    '/console/../../x',
    '/\\\\evil.example',
    '/console//evil.example@x',
  ])('return_to %s leads to the console', async (returnTo) => {
    const { visited } = await signIn('ann', { groups: ['ops'] }, returnTo);
    expect(new URL(visited.at(-1)!).origin).toBe(posthorn.url);
    expect(new URL(visited.at(-1)!).pathname).toBe('/console');
  });
});

test('SEC-4: a tenant does not learn the names of the people who work for the operator', async () => {
  const { browser } = await signIn('ann', { groups: ['ops'] });
  const person = await asPerson(browser);
  const event = await expectStatus(
    person.call('POST', '/v1/events', { type: 'a.b', tenant: 'secretive', data: 1 }),
    202,
  );
  await expectStatus(person.call('DELETE', `/v1/events/${event.body.id}/payload`), 204);
  const task = await expectStatus(
    person.call('POST', '/v1/dead-letters/replay', { filter: { tenant: 'secretive' } }),
    202,
  );
  const { body: own } = await expectStatus(
    person.call('POST', '/v1/keys', { scope: 'tenant', tenant: 'secretive' }),
    201,
  );
  const paths = [
    `/v1/events/${event.body.id}`,
    '/v1/events?tenant=secretive',
    `/v1/tasks/${task.body.id}`,
    '/v1/tasks?tenant=secretive',
    '/v1/audit?tenant=secretive',
  ];
  for (const path of paths) {
    const asTenant = await expectStatus(posthorn.api('GET', path, undefined, { key: own.key }), 200);
    expect(asTenant.text, path).toContain('"operator"');
    expect(asTenant.text, path).not.toMatch(/\bann\b|127\.0\.0\.1/);
    expect((await person.call('GET', path)).text, path).toContain('"user:ann"');
  }
  const found = await posthorn.api('GET', '/v1/audit?actor=user:ann', undefined, { key: own.key });
  expect(found.body.data).toEqual([]);
});
