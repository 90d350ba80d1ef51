/** OBS-4: notices about endpoints and deliveries reach people, in a chat or by e-mail, as deliveries of the same engine. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import {
  attemptsOf,
  type CallOptions,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  usePosthorn,
} from '../support/posthorn.ts';

const mail = await startMailServer();
afterAll(() => mail.close());

const SETTINGS = {
  POSTHORN_OPERATIONAL_EVENTS_MS: '30ms',
  POSTHORN_NOTICE_WINDOW_MS: '800ms',
  POSTHORN_DEAD_EVENT_WINDOW_MS: '10ms',
  POSTHORN_STATS_FLUSH_MS: '50ms',
  POSTHORN_STATS_CACHE_MS: '0',
  POSTHORN_SMTP_URL: mail.url,
  POSTHORN_SMTP_FROM: 'Posthorn <posthorn@sender.test>',
};
const posthorn = usePosthorn({ inProcess: true, env: SETTINGS });

async function newNotifier(settings: Record<string, unknown>, options: CallOptions = {}) {
  const { body } = await expectStatus(posthorn.api('POST', '/v1/notifiers', settings, options), 201);
  onTestFinished(async () => void (await posthorn.api('DELETE', `/v1/notifiers/${body.id}`)));
  return body;
}
const refused = async (settings: Record<string, unknown>, options: CallOptions = {}, status = 422) =>
  (await expectStatus(posthorn.api('POST', '/v1/notifiers', settings, options), status)).body;
async function newKey(settings: Record<string, unknown>): Promise<CallOptions> {
  const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201);
  return { key: body.key };
}
let addresses = 0;
const newAddress = (): string => `person-${++addresses}@mail.test`;
const disable = (id: string) =>
  expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false }), 200);
const linkIn = (text: string): string => {
  const { pathname, search } = new URL(/https?:\S+/.exec(text.slice(text.indexOf('open this link')))![0]);
  return `${pathname}${search}`;
};
const open = (method: string, path: string) => posthorn.api(method, path, undefined, { key: null });
const messagesOf = async ({ endpoint_id }: { endpoint_id: string }) =>
  (await posthorn.api('GET', `/v1/deliveries?endpoint_id=${endpoint_id}`)).body.data;

/** The only message of the notifier is delivered, by this many attempts. */
const untilDelivered = (notifier: { endpoint_id: string }, attempts = 1) =>
  eventually('the message is delivered', async () => {
    const deliveries = await messagesOf(notifier);
    const [first] = deliveries;
    return first?.status === 'delivered' && first.attempts === attempts && deliveries;
  });

describe('OBS-4: a notifier for a chat', () => {
  test('reports an outage of many endpoints in one message', async () => {
    const tenant = newTenant();
    const chat = await newReceiver();
    const notifier = await newNotifier({ kind: 'slack', tenant, url: `${chat.url}/services/T0/SECRET` });
    const down = await newReceiver();
    down.answer({ status: 503 });
    const count = 25;
    await Promise.all(
      Array.from({ length: count }, (_, n) =>
        createEndpoint(posthorn, {
          url: `${down.url}/${n}`,
          tenant,
          description: `<!channel> shop ${n}\n• fake: line`,
          events: [n === 0 ? 'first' : 'others'],
          breaker: { consecutive: 1, cooldown_seconds: 60 },
        }),
      ),
    );
    await publish(posthorn, { type: 'first', tenant, data: null });
    await eventually('the first notice waits', async () => {
      const waiting = await posthorn.database.query('select from posthorn.notice_digests where tenant = $1', [
        tenant,
      ]);
      return waiting.length > 0 || chat.requests.length > 0;
    });
    await publish(posthorn, { type: 'others', tenant, data: null });
    await untilDelivered(notifier);
    expect(chat.requests).toHaveLength(1);
    const [request] = chat.requests;
    expect(request!.path).toBe('/services/T0/SECRET');
    const { text } = request!.json() as { text: string };
    expect(text).toContain(`*Posthorn: ${count} endpoints failing (circuit open)*`);
    expect(text).toContain('… and 15 more');
    // Descriptions are text: neither mentions nor lines of their own.
    expect(text).toMatch(
      new RegExp(
        `^• ${tenant}: &lt;!channel&gt; shop \\d+ • fake: line \\(127.0.0.1:\\d+\\): 1 failure`,
        'm',
      ),
    );
    expect(text.split('\n')).toHaveLength(12);
  });

  test('shows the path of its URL only to keys that may read secrets, and in no attempt', async () => {
    const tenant = newTenant();
    const chat = await newReceiver();
    const notifier = await newNotifier({ kind: 'slack', tenant, url: `${chat.url}/services/SECRET` });
    const stored = await posthorn.database.query('select * from posthorn.endpoints where tenant = $1', [
      tenant,
    ]);
    expect(JSON.stringify(stored)).toContain(`${chat.url}/[redacted]`);
    expect(JSON.stringify(stored)).not.toContain('SECRET');
    const reader = await newKey({ scope: 'read', tenant });
    const { body } = await posthorn.api('GET', `/v1/notifiers/${notifier.id}`, undefined, reader);
    expect(body.url).toBe(`${chat.url}/[redacted]`);
    const writer = await newKey({ scope: 'tenant', tenant, scopes: ['endpoints:write', 'endpoints:read'] });
    expect((await posthorn.api('GET', '/v1/notifiers', undefined, writer)).body.data[0].url).toContain(
      '[redacted]',
    );
    const owner = await newKey({ scope: 'tenant', tenant });
    expect((await posthorn.api('GET', '/v1/notifiers', undefined, owner)).body.data[0].url).toContain(
      'SECRET',
    );
    await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`, undefined, writer), 202);
    await chat.waitFor(1);
    const [delivery] = await untilDelivered(notifier);
    const [attempt] = await attemptsOf(posthorn, delivery.id);
    expect(JSON.stringify(attempt)).not.toContain('SECRET');
    chat.answer({ status: 404 });
    await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`, undefined, writer), 202);
    for (const path of ['/v1/dead-letters/groups', '/v1/stats?window=1h'])
      await eventually(`${path} has the host only`, async () => {
        const { text } = await posthorn.api('GET', path, undefined, reader);
        expect(text).not.toContain('SECRET');
        return text.includes(`${chat.url}/[redacted]`);
      });
    const audit = await posthorn.api('GET', `/v1/audit?tenant=${tenant}`);
    expect(audit.text).not.toContain('SECRET');
    expect(audit.body.data.map(({ action }: { action: string }) => action)).toEqual(
      expect.arrayContaining(['notifier.create', 'notifier.test']),
    );
  });

  test('obeys the egress guard, retries, and ends as a dead letter that can be replayed', async () => {
    const tenant = newTenant();
    expect(await refused({ kind: 'slack', tenant, url: 'https://10.0.0.1/x' })).toMatchObject({
      code: 'url_forbidden',
    });
    const chat = await newReceiver();
    const notifier = await newNotifier({ kind: 'slack', tenant, url: chat.url });
    chat.answer({ status: 404 });
    const { body } = await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`), 202);
    await eventually('the message is a dead letter', async () => {
      const dead = (await posthorn.api('GET', `/v1/dead-letters?tenant=${tenant}`)).body.data;
      return dead.some(({ id }: { id: string }) => id === body.id);
    });
    chat.answer({ status: 200 });
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${body.id}/replay`), 202);
    const [, again] = await chat.waitFor(2);
    expect(again!.json().text).toContain('test message');
    await untilDelivered(notifier, 2);
    const sent = await posthorn.api('GET', `/v1/deliveries/${body.id}/attempts/2/request`);
    expect(sent.text).toBe(again!.body.toString());
  });

  test('is refused while a worker of the previous release is registered', async () => {
    const name = 'previous release';
    const remove = () => posthorn.database.query('delete from posthorn.workers where name = $1', [name]);
    onTestFinished(async () => void (await remove()));
    await posthorn.database.query(
      `insert into posthorn.workers (id, name, lock_key, wire_version, stopping)
       values ('00000000-0000-7000-8000-000000000001', $1, 1, 1, true)`,
      [name],
    );
    const settings = { kind: 'slack', tenant: newTenant(), url: 'https://chat.test/x' };
    expect((await refused(settings, {}, 409)).detail).toContain('previous release');
    await remove();
    await newNotifier(settings);
  });

  test('is no endpoint: neither listed, counted, changed, tested, probed nor named by producers', async () => {
    const tenant = newTenant();
    const chat = await newReceiver();
    const { endpoint_id: id } = await newNotifier({ kind: 'slack', tenant, url: chat.url });
    expect((await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data).toEqual([]);
    expect((await posthorn.api('GET', `/v1/stats?tenant=${tenant}`)).body.now.endpoints).toBe(0);
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { url: 'https://example.com/' }],
      ['DELETE', ''],
      ['POST', '/test', { type: 'a.b', data: 'text of a tenant' }],
      ['POST', '/probe'],
      ['POST', '/rotate-secret', {}],
      ['GET', '/secret'],
    ] as const)
      expect([method, path, (await posthorn.api(method, `/v1/endpoints/${id}${path}`, body)).status]).toEqual(
        [method, path, 404],
      );
    const event = { type: 'a.b', tenant, data: 'text of a tenant', endpoint_ids: [id] };
    await expectStatus(posthorn.api('POST', '/v1/events', event), 422);
    expect(chat.requests).toEqual([]);
  });
});

describe('OBS-4: a notifier of the operator', () => {
  test('reports all tenants, and only admin keys may create one', async () => {
    const tenant = newTenant();
    const other = newTenant();
    const ofTenant = await newKey({ scope: 'tenant', tenant });
    await refused({ kind: 'slack', operator: true, url: 'https://example.com/x' }, ofTenant, 403);
    const address = newAddress();
    const notifier = await newNotifier({
      kind: 'email',
      operator: true,
      address,
      events: ['posthorn.endpoint.disabled'],
    });
    expect(notifier).toMatchObject({ tenant: 'posthorn', operator: true, status: 'active' });
    const tenantAddress = await newReceiver();
    await newNotifier({ kind: 'slack', tenant, url: tenantAddress.url });
    for (const each of [tenant, other]) {
      const endpoint = await createEndpoint(posthorn, {
        url: tenantAddress.url,
        tenant: each,
        events: ['x'],
      });
      await disable(endpoint.id);
    }
    const messages = await mail.waitFor(1, address);
    expect(messages[0]!.headers.subject).toMatch(/^\[Posthorn\] \d+ endpoints? disabled$/);
    const text = () =>
      mail.messages
        .filter(({ to }) => to.includes(address))
        .map((each) => each.text)
        .join('');
    await eventually('both tenants are reported', () => text().includes(tenant) && text().includes(other));
    const [ofOneTenant] = await tenantAddress.waitFor(1);
    expect(ofOneTenant!.json().text).toContain('1 endpoint disabled');
    expect(ofOneTenant!.json().text).not.toContain(other);
  });
});

describe('OBS-4: an e-mail address of a tenant', () => {
  test('gets nothing but a link until its owner has confirmed, once', async () => {
    const tenant = newTenant();
    const key = await newKey({ scope: 'tenant', tenant });
    const address = newAddress();
    const notifier = await newNotifier({ kind: 'email', address }, key);
    expect(notifier).toMatchObject({ tenant, kind: 'email', address, url: null, status: 'unconfirmed' });
    const [confirmation] = await mail.waitFor(1, address);
    expect(confirmation).toMatchObject({ from: 'posthorn@sender.test', to: [address] });
    expect(confirmation!.headers.subject).toBe('[Posthorn] Confirm that you want notices');
    const link = linkIn(confirmation!.text);

    // Meanwhile nothing else is sent.
    const endpoint = await createEndpoint(posthorn, { url: 'https://example.com/', tenant, events: ['x'] });
    await disable(endpoint.id);
    await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`, undefined, key), 409);

    // The tenant cannot read the link.
    const [delivery] = await untilDelivered(notifier);
    const token = new URL(link, 'http://x').searchParams.get('token')!;
    for (const path of [
      `/v1/events/${delivery.event_id}`,
      `/v1/deliveries/${delivery.id}/attempts`,
      `/v1/deliveries/${delivery.id}/attempts/1/request`,
      `/v1/notifiers/${notifier.id}`,
    ]) {
      const { status, text } = await posthorn.api('GET', path, undefined, key);
      expect([path, status, text.includes(token)]).toEqual([path, 200, false]);
    }

    // Opening the link changes nothing, because mail programs do that. The button confirms.
    await eventually('the note is taken', async () => {
      const notes = await posthorn.database.query('select from posthorn.operational_notes');
      return notes.length === 0;
    });
    const page = await expectStatus(open('GET', link), 200);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect((await posthorn.api('GET', `/v1/notifiers/${notifier.id}`)).body.status).toBe('unconfirmed');
    await expectStatus(open('POST', `${link}x`), 410);
    const pressed = await fetch(`${posthorn.url}${link}`, { method: 'POST', body: new URLSearchParams() });
    expect(pressed.status).toBe(200);
    await expectStatus(open('POST', link), 410);
    await expectStatus(open('GET', link), 410);
    const { body } = await posthorn.api('GET', `/v1/notifiers/${notifier.id}`);
    expect(body).toMatchObject({ status: 'active', confirmed_at: expect.any(String) });

    await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`, undefined, key), 202);
    const [, testMessage] = await mail.waitFor(2, address);
    expect(testMessage!.headers.subject).toBe('[Posthorn] Test message');
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: true }), 200);
    const [, , notice] = await mail.waitFor(3, address);
    expect(notice!.headers.subject).toBe('[Posthorn] 1 endpoint enabled');
    expect(notice!.headers['auto-submitted']).toBe('auto-generated');
    expect(notice!.text).toContain(`/console/endpoints/${endpoint.id}`);
  });

  test('cannot be flooded with confirmations: not by new notifiers, nor by replays', async () => {
    const tenant = newTenant();
    const address = newAddress();
    const first = await newNotifier({ kind: 'email', tenant, address });
    await mail.waitFor(1, address);
    const [delivery] = await untilDelivered(first);
    for (let n = 0; n < 2; n += 1) {
      await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id}/replay`), 202);
      await untilDelivered(first, 2 + n);
    }
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id}/replay`), 202);
    await eventually('a replay beyond the limit is refused', async () => {
      const [again] = await messagesOf(first);
      return again.status === 'dead' && again.last_error === 'mail_rejected';
    });
    // Other tenants, other spellings.
    const problem = await refused(
      { kind: 'email', tenant: newTenant(), address: address.toUpperCase() },
      {},
      429,
    );
    expect(problem.code).toBe('rate_limited');
    expect(mail.messages.filter(({ to }) => to.includes(address))).toHaveLength(3);
  });

  test('cannot be flooded with test messages, nor delay the operator by them', async () => {
    const tenant = newTenant();
    const address = newAddress();
    const notifier = await newNotifier({ kind: 'email', tenant, address });
    const [confirmation] = await mail.waitFor(1, address);
    await expectStatus(open('POST', linkIn(confirmation!.text)), 200);
    const sendTest = (id: string) => posthorn.api('POST', `/v1/notifiers/${id}/test`);
    const release = mail.hold(address);
    onTestFinished(release);
    const answers = await Promise.all(Array.from({ length: 8 }, () => sendTest(notifier.id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 202, 202, 202, 202, 429, 429, 429]);
    const refusal = answers.find(({ status }) => status === 429)!;
    expect(refusal.body.code).toBe('rate_limited');
    expect(Number(refusal.headers['retry-after'])).toBeGreaterThan(30);

    const ofOperator = await newNotifier({ kind: 'email', operator: true, address: newAddress() });
    await expectStatus(sendTest(ofOperator.id), 202);
    await untilDelivered(ofOperator);
    expect(mail.messages.filter(({ to }) => to.includes(address))).toHaveLength(1);
    const [stored] = await posthorn.database.query<{ config: Record<string, unknown> }>(
      'select config from posthorn.endpoints where tenant = $1',
      [tenant],
    );
    expect(stored!.config).toMatchObject({ max_in_flight: 1 });
    release();
    await mail.waitFor(6, address);
  });

  test('is in no table after the notifier was deleted: attempts and audit log have one letter of it', async () => {
    const address = 'secret.name@private.test';
    const notifier = await newNotifier({ kind: 'email', operator: true, address });
    await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`), 202);
    const [delivery] = await untilDelivered(notifier);
    const [attempt] = await attemptsOf(posthorn, delivery.id);
    expect(attempt).toMatchObject({
      url: 'mailto:s…@private.test',
      request_headers: { to: 's…@private.test', from: 'Posthorn <posthorn@sender.test>' },
    });
    const { text } = await posthorn.api('GET', `/v1/audit?object_id=${notifier.id}`);
    expect(text).toContain('mailto:s…@private.test');
    await expectStatus(posthorn.api('DELETE', `/v1/notifiers/${notifier.id}`), 204);
    const tables = await posthorn.database.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'posthorn'",
    );
    for (const { name } of tables)
      expect(
        await posthorn.database.query(`select from posthorn.${name} t where t::text like '%secret.name%'`),
        name,
      ).toEqual([]);
  });

  test('that the mail server refuses permanently is a dead letter; a temporary failure is retried', async () => {
    onTestFinished(() => mail.refuseWith(null));
    const address = newAddress();
    const notifier = await newNotifier({ kind: 'email', operator: true, address });
    const sendTest = async () =>
      (await expectStatus(posthorn.api('POST', `/v1/notifiers/${notifier.id}/test`), 202)).body.id;
    const until = (id: string, status: string) =>
      eventually(`the delivery is ${status}`, async () => {
        const { body } = await posthorn.api('GET', `/v1/deliveries/${id}`);
        return body.status === status && body;
      });
    mail.refuseWith(550);
    const rejected = await until(await sendTest(), 'dead');
    expect(rejected).toMatchObject({ reason: 'rejected', last_error: 'mail_rejected' });
    const [attempt] = await attemptsOf(posthorn, rejected.id);
    expect(attempt!.error!.message).toBe('The mail server refused the message (550).');
    // Answers of the mail server may name machines of the operator.
    expect(JSON.stringify(attempt)).not.toContain('mx1.internal');
    mail.refuseWith(451);
    const waiting = await until(await sendTest(), 'retrying');
    expect(waiting.last_error).toBe('mail_failed');
    mail.refuseWith(null);
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${waiting.id}/replay`), 202);
    await until(waiting.id, 'delivered');
    expect(mail.messages.filter(({ to }) => to.includes(address))).toHaveLength(1);
  });

  test('is one plain address', async () => {
    for (const address of [
      'a@b.test,c@d.test',
      'Ann <ann@b.test>',
      'ann@b.test\r\nBcc: x@y.test',
      'ann',
      'ann@localhost',
      'ann@b.test?bcc=x@y.test',
    ])
      expect((await refused({ kind: 'email', address })).errors[0].path).toBe('address');
    expect((await refused({ kind: 'email', url: 'https://example.com' })).errors[0].path).toBe('address');
    expect((await refused({ kind: 'slack', address: newAddress() })).errors[0].path).toBe('url');
    const wrong = { kind: 'slack', url: 'https://example.com/', events: ['order.*'] };
    expect((await refused(wrong)).errors[0].path).toBe('events[0]');
  });
});

test('OBS-4: without a mail server, notifiers with e-mail addresses are refused; with required challenges, only known chats are allowed', async () => {
  const bare = await startTestPosthorn({
    inProcess: true,
    database: posthorn.database,
    env: { POSTHORN_REQUIRE_CHALLENGE: 'on' },
  });
  onTestFinished(() => bare.stop());
  const email = await bare.api('POST', '/v1/notifiers', { kind: 'email', address: newAddress() });
  expect(email).toMatchObject({ status: 422, body: { errors: [{ path: 'kind' }] } });
  expect(email.body.detail).toContain('POSTHORN_SMTP_URL');
  const { key } = await newKey({ scope: 'tenant', tenant: newTenant() });
  const victim = await bare.api(
    'POST',
    '/v1/notifiers',
    { kind: 'slack', url: 'https://victim.example/' },
    { key: key! },
  );
  expect(victim).toMatchObject({ status: 422, body: { errors: [{ path: 'url' }] } });
  const slack = { kind: 'slack', url: 'https://hooks.slack.com/services/x' };
  await expectStatus(bare.api('POST', '/v1/notifiers', slack, { key: key! }), 201);
});
