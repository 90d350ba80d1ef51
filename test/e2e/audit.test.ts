import { readFile } from 'node:fs/promises';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AuditDependencies, auditedAction, auditRoute } from '../../src/api/http/audit-routes.ts';
import { auditActions } from '../../src/manage/audit-actions.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { insertRejectedRecord } from '../support/kafka/rejected-record.ts';
import {
  type CallOptions,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { allRoutes } from '../support/routes.ts';

let database: TestDatabase;
let posthorn: TestPosthorn;

beforeAll(async () => {
  database = await createTestDatabase();
  const env = {
    POSTHORN_TRUSTED_PROXIES: '127.0.0.1',
    // Restores are accepted, and wait.
    POSTHORN_ARCHIVE_URL: 'file:///posthorn-missing-archive',
  };
  posthorn = await startTestPosthorn({ database, env });
});
afterAll(async () => {
  await posthorn?.stop();
  await database?.drop();
});

interface Entry {
  readonly id: string;
  readonly action: string;
  readonly tenant: string | null;
  readonly actor: { id: string; prefix: string | null; scope: string };
  readonly object: { type: string; id: string | null };
  readonly changes: { field: string; before?: unknown; after?: unknown }[];
  readonly request_id: string;
  readonly address: string;
  readonly created_at: string;
}

async function audit(query: string, options?: CallOptions): Promise<Entry[]> {
  return (await expectStatus(posthorn.api('GET', `/v1/audit?${query}`, undefined, options), 200)).body.data;
}

const newKey = async (settings: object) =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body as { id: string; key: string };

/** A dead letter of the tenant. */
async function newDeadLetter(tenant: string): Promise<{ event: string; delivery: string }> {
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
  return { event: event.id, delivery: delivery!.id };
}

describe('SEC-4: every change is recorded', () => {
  /** How to change something by each route. Returns the answer to the change. */
  const changes: Record<string, (tenant: string, url: string) => Promise<{ status: number; text: string }>> =
    {
      'POST /v1/endpoints': (tenant, url) => posthorn.api('POST', '/v1/endpoints', { tenant, url }),
      'PATCH /v1/endpoints/:id': ofEndpoint('PATCH', '', { description: 'changed' }),
      'DELETE /v1/endpoints/:id': ofEndpoint('DELETE', ''),
      'POST /v1/endpoints/:id/pause': ofEndpoint('POST', '/pause'),
      'POST /v1/endpoints/:id/resume': ofEndpoint('POST', '/resume', undefined, { paused: true }),
      'POST /v1/endpoints/:id/rotate-secret': ofEndpoint('POST', '/rotate-secret', {}),
      'DELETE /v1/endpoints/:id/secrets/previous': ofEndpoint('DELETE', '/secrets/previous'),
      'GET /v1/endpoints/:id/secret': ofEndpoint('GET', '/secret'),
      'POST /v1/endpoints/:id/test': ofEndpoint('POST', '/test', {}),
      'POST /v1/endpoints/:id/probe': ofEndpoint('POST', '/probe'),
      'POST /v1/endpoints/:id/replay': ofEndpoint('POST', '/replay', {}),
      'POST /v1/events/:id/replay': ofDeadLetter(({ event }) => [`/v1/events/${event}/replay`, {}]),
      'DELETE /v1/events/:id/payload': async (tenant) => {
        const { id } = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
        return posthorn.api('DELETE', `/v1/events/${id}/payload`);
      },
      'POST /v1/deliveries/:id/replay': ofDeadLetter(({ delivery }) => [`/v1/deliveries/${delivery}/replay`]),
      'POST /v1/deliveries/:id/discard': ofDeadLetter(({ delivery }) => [
        `/v1/deliveries/${delivery}/discard`,
        {},
      ]),
      'POST /v1/deliveries/:id/restore': ofDeadLetter(async ({ delivery }) => {
        await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery}/discard`, {}), 200);
        return [`/v1/deliveries/${delivery}/restore`];
      }),
      'POST /v1/dead-letters/replay': (tenant) =>
        posthorn.api('POST', '/v1/dead-letters/replay', { filter: { tenant } }),
      'POST /v1/dead-letters/discard': (tenant) =>
        posthorn.api('POST', '/v1/dead-letters/discard', { filter: { tenant } }),
      'POST /v1/tasks/:id/cancel': async (tenant) => {
        // As if another process ran it, so that none here ends it first.
        const order = { filter: { tenant } };
        const { body } = await expectStatus(posthorn.api('POST', '/v1/dead-letters/replay', order), 202);
        await database.query(
          "update posthorn.tasks set state = 'queued', finished_at = null, runner = gen_random_uuid(), heartbeat_at = clock_timestamp()",
        );
        return posthorn.api('POST', `/v1/tasks/${body.id}/cancel`);
      },
      'POST /v1/archive/restore': async () => {
        await database.query(
          `insert into posthorn.archive_parts (kind, day, part, partition, archive, rows, bytes, sha256, rows_sha256)
           values ('events', '2020-01-15', 0, 'events_20200115', 'file:///archive', 1, 1, '', '')`,
        );
        return posthorn.api('POST', '/v1/archive/restore', { day: '2020-01-15' });
      },
      'POST /v1/sources/kafka/rejected/retry': async (tenant) => {
        await insertRejectedRecord(database, { tenant });
        return posthorn.api('POST', '/v1/sources/kafka/rejected/retry', {});
      },
      'POST /v1/sources/kafka/rejected/:id/retry': ofRejectedRecord('POST', '/retry'),
      'DELETE /v1/sources/kafka/rejected/:id': ofRejectedRecord('DELETE', ''),
      'PUT /v1/tenants/:id': (tenant) => posthorn.api('PUT', `/v1/tenants/${tenant}`, { name: 'new' }),
      'DELETE /v1/tenants/:id': async (tenant) => {
        await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, {}), 201);
        await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { name: 'changed' }), 200);
        await expectStatus(posthorn.api('PUT', '/v1/tenants/expunged', {}), 201);
        await expectStatus(posthorn.api('DELETE', '/v1/tenants/expunged?expunge=true&confirm=expunged'), 202);
        return posthorn.api('DELETE', `/v1/tenants/${tenant}`);
      },
      'PUT /v1/event-types/:name/versions/:version': async () => {
        await expectStatus(posthorn.api('PUT', '/v1/event-types/e.f/versions/v1', {}), 201);
        return posthorn.api('PUT', '/v1/event-types/e.f/versions/v1', { changelog: 'changed' });
      },
      'PUT /v1/event-types/:name': () => posthorn.api('PUT', '/v1/event-types/a.b', {}),
      'DELETE /v1/event-types/:name': async () => {
        await expectStatus(posthorn.api('PUT', '/v1/event-types/c.d', {}), 201);
        await expectStatus(posthorn.api('PUT', '/v1/event-types/c.d', { deprecated: true }), 200);
        return posthorn.api('DELETE', '/v1/event-types/c.d');
      },
      'POST /v1/notifiers': (tenant, url) =>
        posthorn.api('POST', '/v1/notifiers', { kind: 'slack', tenant, url }),
      'POST /v1/notifiers/:id/test': ofNotifier('POST', '/test'),
      'DELETE /v1/notifiers/:id': ofNotifier('DELETE', ''),
      'POST /v1/keys': (tenant) => posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }),
      'PATCH /v1/keys/:id': async (tenant) =>
        posthorn.api('PATCH', `/v1/keys/${(await newKey({ scope: 'tenant', tenant })).id}`, {
          scopes: ['events:publish'],
        }),
      'DELETE /v1/keys/:id': async (tenant) =>
        posthorn.api('DELETE', `/v1/keys/${(await newKey({ scope: 'tenant', tenant })).id}`),
      'POST /v1/portal-sessions': (tenant) => posthorn.api('POST', '/v1/portal-sessions', { tenant }),
      'DELETE /v1/portal-sessions/:id': async (tenant) => {
        const created = await expectStatus(posthorn.api('POST', '/v1/portal-sessions', { tenant }), 201);
        return posthorn.api('DELETE', `/v1/portal-sessions/${created.body.id}`);
      },
    };

  function ofEndpoint(method: string, path: string, body?: object, settings: object = {}) {
    return async (tenant: string, url: string) => {
      const { id } = await createEndpoint(posthorn, { tenant, url, ...settings });
      return posthorn.api(method, `/v1/endpoints/${id}${path}`, body);
    };
  }

  function ofNotifier(method: string, path: string) {
    return async (tenant: string, url: string) => {
      const notifier = { kind: 'slack', tenant, url };
      const { body } = await expectStatus(posthorn.api('POST', '/v1/notifiers', notifier), 201);
      return posthorn.api(method, `/v1/notifiers/${body.id}${path}`);
    };
  }

  function ofRejectedRecord(method: string, path: string) {
    return async (tenant: string) => {
      const id = await insertRejectedRecord(database, { tenant });
      return posthorn.api(method, `/v1/sources/kafka/rejected/${id}${path}`);
    };
  }

  type DeadLetter = Awaited<ReturnType<typeof newDeadLetter>>;
  type PathAndBody = [path: string, body?: object];
  function ofDeadLetter(call: (deadLetter: DeadLetter) => PathAndBody | Promise<PathAndBody>) {
    return async (tenant: string, url: string) => {
      await createEndpoint(posthorn, { tenant, url });
      return posthorn.api('POST', ...(await call(await newDeadLetter(tenant))));
    };
  }

  test('by every route that changes something, with a documented action', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 404 });
    // What only reads, and what publishes.
    const silent = [
      'POST /v1/events',
      'POST /v1/events/batch',
      'POST /v1/filters/try',
      'POST /v1/filters/count',
      'POST /v1/shaping/estimate',
      'POST /v1/event-types/:name/try',
      'POST /v1/event-types/:name/versions/:version/check',
      'POST /v1/endpoints/:id/preview',
    ];
    const changing = (await allRoutes())
      .map(({ method, path }) => `${method} ${path}`)
      .filter((route) => /^\w+ \/v1\//.test(route) && !silent.includes(route))
      // Inboxes are for tests, so the audit log does not record them.
      .filter((route) => !/\/v1\/inboxes\b/.test(route))
      .filter((route) => !route.startsWith('GET ') || route in changes);
    const actions = new Set<string>();
    for (const route of changing) {
      expect(changes, `${route}: this test needs to know how to change something by it`).toHaveProperty([
        route,
      ]);
      const tenant = newTenant();
      const answer = await changes[route]!(tenant, receiver.url);
      expect(answer.status, `${route}: ${answer.text}`).toBeLessThan(300);
      const [entry] = await audit(`limit=1`);
      const kind = /^\w+ \/v1\/([\w-]+)/.exec(route)![1]!;
      expect(entry, route).toMatchObject({
        tenant:
          ['event-types', 'archive'].includes(kind) || route.endsWith('/rejected/retry') ? null : tenant,
        actor: { id: 'admin', prefix: null, scope: 'admin' },
        object: { id: expect.any(String) },
        address: '127.0.0.1',
        request_id: expect.stringMatching(/^req_/),
      });
    }
    const documented = [
      ...(await readFile(new URL('../../docs/audit.md', import.meta.url), 'utf8')).matchAll(
        /^\| `(\w+\.\w+)` \|/gm,
      ),
    ].map((match) => match[1]!);
    for (const { action } of await audit('limit=250')) actions.add(action);
    // No route disables an endpoint by a rule: see health.test.ts. Sessions: see sign-in.test.ts. Confirmations: notices.test.ts.
    const elsewhere = ['endpoint.disable', 'notifier.confirm', 'session.create', 'session.delete'];
    expect([...actions, ...elsewhere].toSorted()).toEqual(documented.toSorted());
    expect(auditActions.toSorted()).toEqual(documented.toSorted());
  });

  test('with actor, action, address and changed fields, but no secrets', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { key, ...shown } = await newKey({ scope: 'tenant', tenant });
    const created = await posthorn.api(
      'POST',
      '/v1/endpoints',
      { url: receiver.url, headers: { 'x-api-key': 'hush-hush' }, metadata: { note: 'hush-hush' } },
      { key },
    );
    const { id, secret } = created.body;
    const patch = {
      description: 'new',
      events: ['a.*'],
      headers: { 'x-api-key': 'hush-hush-2', 'x-other': 'o' },
    };
    const patched = await posthorn.api('PATCH', `/v1/endpoints/${id}`, patch, { key });
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/rotate-secret`, {}, { key }), 200);

    const entries = await audit(`object_id=${id}`);
    expect(entries.map(({ action }) => action)).toEqual([
      'endpoint.rotate_secret',
      'endpoint.update',
      'endpoint.create',
    ]);
    expect(entries[1]).toEqual({
      id: expect.stringMatching(/^aud_/),
      created_at: expect.any(String),
      action: 'endpoint.update',
      tenant,
      actor: { id: shown.id, prefix: key.slice(0, 10), scope: 'tenant' },
      object: { type: 'endpoint', id },
      changes: expect.arrayContaining([
        { field: 'description', before: '', after: 'new' },
        { field: 'events', before: null, after: ['a.*'] },
        { field: 'headers' },
      ]),
      request_id: patched.headers['x-request-id'],
      address: '127.0.0.1',
    });
    expect(Math.abs(Date.parse(entries[1]!.created_at) - Date.now())).toBeLessThan(30_000);
    expect(entries[2]!.changes).toContainEqual({ field: 'url', before: '', after: `${receiver.url}/` });
    const all = JSON.stringify(await database.query('select * from posthorn.audit_log'));
    for (const hidden of ['hush', secret.slice(6), key.slice(10), posthorn.key.slice(4)])
      expect(all).not.toContain(hidden);
  });

  test('with the client address that a trusted proxy sends', async () => {
    const tenant = newTenant();
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.7' };
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, {}, { headers }), 201);
    expect(await audit(`tenant=${tenant}`)).toMatchObject([{ address: '203.0.113.7' }]);
  });

  test('but a request that is refused or changes nothing leaves no entry', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { tenant, url: receiver.url });
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, {}), 200);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: false }), 200);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { url: 'ftp://x' }), 422);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/replay`, { dry_run: true }), 200);
    const read = await newKey({ scope: 'read', tenant });
    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${id}`, undefined, { key: read.key }), 403);
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    expect((await audit(`tenant=${tenant}`)).map(({ action }) => action)).toEqual([
      'key.create',
      'endpoint.create',
    ]);
  });

  test('and a change that cannot be recorded is not made', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { tenant, url: receiver.url });
    const changes = [
      ['POST', '/v1/endpoints', { tenant, url: receiver.url }],
      ['POST', `/v1/endpoints/${id}/pause`],
      ['DELETE', `/v1/endpoints/${id}`],
      ['POST', '/v1/keys', { scope: 'tenant', tenant }],
      ['PUT', `/v1/tenants/${tenant}`, { name: 'changed' }],
      ['GET', `/v1/endpoints/${id}/secret`],
    ] as const;
    await database.query('alter table posthorn.audit_log rename to audit_log_away');
    try {
      for (const [method, path, body] of changes)
        expect((await posthorn.api(method, path, body)).status, `${method} ${path}`).toBe(500);
    } finally {
      await database.query('alter table posthorn.audit_log_away rename to audit_log');
    }
    const { body: endpoints } = await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`);
    expect(endpoints.data).toMatchObject([{ id, paused: false }]);
    expect((await posthorn.api('GET', `/v1/keys?tenant=${tenant}`)).body.data).toEqual([]);
    expect((await posthorn.api('GET', `/v1/tenants/${tenant}`)).body.name).toBe('');
  });

  test('and the entries survive a restart of all processes', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { tenant, url: receiver.url });
    const before = await audit(`tenant=${tenant}`);
    await posthorn.kill('SIGKILL');
    posthorn = await startTestPosthorn({ database });
    expect(await audit(`tenant=${tenant}`)).toEqual(before);
    expect(before).toMatchObject([{ action: 'endpoint.create', object: { id } }]);
  });
});

describe('GET /v1/audit', () => {
  test('filters by each parameter, in pages', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const admin = await newKey({ scope: 'admin' });
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1)
      ids.push((await createEndpoint(posthorn, { tenant, url: receiver.url }, { key: admin.key })).id);
    const middle = (await audit(`object_id=${ids[1]}`))[0]!;
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${ids[0]}/pause`), 200);

    const objects = async (query: string) => (await audit(query)).map(({ object }) => object.id);
    expect(await objects(`tenant=${tenant}`)).toEqual([ids[0], ids[2], ids[1], ids[0]]);
    expect(await objects(`actor=${admin.id}`)).toEqual([ids[2], ids[1], ids[0]]);
    expect(await objects(`tenant=${tenant}&action=endpoint.pause`)).toEqual([ids[0]]);
    expect(await objects(`tenant=${tenant}&actor=admin`)).toEqual([ids[0]]);
    expect(await objects(`tenant=${tenant}&since=${middle.created_at}`)).toEqual(
      expect.arrayContaining([ids[0], ids[2], ids[1]]),
    );
    expect(await objects(`tenant=${tenant}&until=${middle.created_at}`)).not.toContain(ids[1]);

    const pages: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = `tenant=${tenant}&limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const { body } = await expectStatus(posthorn.api('GET', `/v1/audit?${query}`), 200);
      pages.push(...body.data.map(({ object }: Entry) => object.id));
      cursor = body.next_cursor;
    }
    expect(pages).toEqual([ids[0], ids[2], ids[1], ids[0]]);
  });

  test('shows a tenant key only the entries of its tenant', async () => {
    const receiver = await newReceiver();
    const [mine, theirs] = [newTenant(), newTenant()];
    const { key } = await newKey({ scope: 'read', tenant: mine });
    await createEndpoint(posthorn, { tenant: mine, url: receiver.url });
    const other = await createEndpoint(posthorn, { tenant: theirs, url: receiver.url });
    const seen = await audit('limit=250', { key });
    expect(seen.map(({ action }) => action)).toEqual(['endpoint.create', 'key.create']);
    expect(await audit(`object_id=${other.id}`, { key })).toEqual([]);
    await expectStatus(posthorn.api('GET', `/v1/audit?tenant=${theirs}`, undefined, { key }), 403);
  });

  test('SEC-4: a tenant sees that the operator made a change, and neither who nor from where', async () => {
    const tenant = newTenant();
    const admin = await newKey({ scope: 'admin' });
    const own = await newKey({ scope: 'tenant', tenant });
    const receiver = await newReceiver();
    receiver.answer({ status: 400 });
    await createEndpoint(posthorn, { tenant, url: receiver.url });
    const { delivery } = await newDeadLetter(tenant);
    const discard = `/v1/deliveries/${delivery}/discard`;
    await expectStatus(posthorn.api('POST', discard, {}, { key: admin.key }), 200);

    const [asTenant] = await audit('action=delivery.discard', { key: own.key });
    expect(asTenant).toMatchObject({ actor: { id: 'operator', prefix: null, scope: 'admin' }, address: '' });
    const [asAdmin] = await audit(`tenant=${tenant}&action=delivery.discard`);
    expect(asAdmin).toMatchObject({ actor: { id: admin.id }, address: expect.stringMatching(/./) });

    expect(await audit(`actor=${admin.id}`, { key: own.key })).toEqual([]);
    expect(await audit('actor=admin', { key: own.key })).toEqual([]);
    const all = (await audit('limit=250', { key: own.key })).filter(({ actor }) => actor.scope === 'admin');
    expect(await audit('limit=250&actor=operator', { key: own.key })).toEqual(all);

    const reasonFor = async (key: string) =>
      (await posthorn.api('GET', `/v1/deliveries/${delivery}`, undefined, { key })).body.reason;
    expect([await reasonFor(own.key), await reasonFor(admin.key)]).toEqual(['operator', admin.id]);
    // Their own changes keep their names.
    const { body: task } = await expectStatus(
      posthorn.api('POST', '/v1/dead-letters/discard', { filter: {} }, { key: own.key }),
      202,
    );
    expect(task.created_by).toBe(own.id);
    const [order] = await audit(`actor=${own.id}`, { key: own.key });
    expect(order).toMatchObject({ actor: { id: own.id }, address: expect.stringMatching(/./) });
  });

  test.each([
    ['cursor=ep_nonsense', 400, 'bad_cursor'],
    ['since=yesterday', 422, 'invalid'],
    ['who=me', 422, 'invalid'],
  ])('refuses ?%s', async (query, status, code) => {
    const { body } = await expectStatus(posthorn.api('GET', `/v1/audit?${query}`), status);
    expect(body.code).toBe(code);
  });

  test('reads an index range for every filter', async () => {
    await database.query(
      `insert into posthorn.audit_log (id, tenant, actor, scope, action, object_type, object_id, request_id, address)
       select ('00000000-0000-7' || lpad(to_hex(n / 65536), 3, '0') || '-8' || lpad(to_hex(n % 4096), 3, '0') || '-' || lpad(to_hex(n), 12, '0'))::uuid,
              'bulk-' || n % 50, 'key_' || n % 20, 'tenant', 'endpoint.' || n % 10, 'endpoint', 'ep_' || n % 5000, 'req_x', '::1'
         from generate_series(1, 50000) n`,
    );
    await database.query('analyze posthorn.audit_log');
    const filters = [
      "tenant = 'bulk-7'",
      "actor = 'key_7'",
      "action = 'endpoint.7'",
      "object_id = 'ep_7'",
      "id < '00000000-0000-7000-8fff-000000000000'",
      'true',
    ];
    for (const filter of filters) {
      const [row] = await database.query(
        `explain (format json) select * from posthorn.audit_log where ${filter} order by id desc limit 51`,
      );
      const plan = JSON.stringify(row!['QUERY PLAN']);
      expect(plan, filter).toContain('Index Scan');
      expect(plan, filter).not.toContain('Sort');
    }
  });

  test('deletes entries after their retention time', async () => {
    const tenant = newTenant();
    await newKey({ scope: 'tenant', tenant });
    const upkeep = await startTestPosthorn({
      database,
      inProcess: true,
      env: { POSTHORN_AUDIT_RETENTION_MS: '1h', POSTHORN_UPKEEP_MS: '100' },
    });
    onTestFinished(() => upkeep.stop());
    await eventually('the old ones are gone', async () => (await audit('tenant=bulk-7')).length === 0);
    expect(await audit(`tenant=${tenant}`)).toHaveLength(1);
  });
});

describe('a route without its own audit entry', () => {
  async function serverWith(connectionString: string) {
    const db = openDatabase({
      connectionString,
      apiConnections: 1,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    const logged: object[] = [];
    const context = {
      pool: db.pool('api'),
      clock: { now: Date.now },
      isTrustedProxy: () => false,
      log: { error: (line: object) => logged.push(line) },
    } as unknown as AuditDependencies;
    const server = Fastify();
    server.decorateRequest('caller');
    server.decorateRequest('audit');
    server.addHook('onRoute', (route) => auditRoute(context, route));
    server.addHook('onRequest', async (request) => {
      request.caller = { keyId: null, scope: 'admin', scopes: null, tenant: 'acme', prefix: null };
    });
    server.post('/v1/new-things/:id/shake', async () => ({ shaken: true }));
    server.post('/v1/new-things/look', { config: { reads: true } }, async () => ({ looked: true }));
    onTestFinished(async () => {
      await server.close();
      await db.close();
    });
    return { server, logged };
  }

  test('is recorded by default', async () => {
    const { server } = await serverWith(database.url);
    expect((await server.inject({ method: 'POST', url: '/v1/new-things/look' })).statusCode).toBe(200);
    const answer = await server.inject({ method: 'POST', url: '/v1/new-things/thing-1/shake' });
    expect(answer.json()).toEqual({ shaken: true });
    expect(await audit('tenant=acme')).toMatchObject([
      { action: 'new_thing.shake', object: { type: 'new_thing', id: 'thing-1' } },
    ]);
  });

  test('answers with an error and logs the entry if it cannot be recorded', async () => {
    const { server, logged } = await serverWith(`${database.url}_that_is_not_there`);
    const answer = await server.inject({ method: 'POST', url: '/v1/new-things/thing-1/shake' });
    expect(answer.statusCode).toBe(500);
    expect(logged).toMatchObject([{ audit: { action: 'new_thing.shake', object_id: 'thing-1' } }]);
  });

  test.each([
    ['POST', '/v1/endpoints', 'endpoint.create'],
    ['PATCH', '/v1/endpoints/:id', 'endpoint.update'],
    ['PUT', '/v1/event-types/:name', 'event_type.update'],
    ['DELETE', '/v1/deliveries/:id', 'delivery.delete'],
    ['DELETE', '/v1/events/:id/payload', 'event.payload_delete'],
    ['POST', '/v1/portal-sessions', 'portal_session.create'],
    ['GET', '/v1/endpoints', null],
  ])('%s %s is %s', (method, url, action) => {
    expect(auditedAction({ method, url } as Parameters<typeof auditedAction>[0])).toBe(action);
  });
});
