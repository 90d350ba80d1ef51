/**
 * Provokes every problem that an operation documents, and every status with which it succeeds.
 *
 * Problems that many operations share are provoked in all operations that document them. Others have their own test below.
 * The last test compares the answers with /openapi.json. If you add a route, or a problem to one, it says what is missing
 * here.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newEventId, publicId } from '../../src/domain/ids.ts';
import { problemCodes } from '../../src/domain/problem.ts';
import { type ApiOperation, Contract } from '../support/contract.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  usePosthorn,
} from '../support/posthorn.ts';
import { ProblemMatrix } from '../support/problem-matrix.ts';
import { exchange, type RawAnswer } from '../support/raw-http.ts';
import { type Behaviour, type Receiver, startReceiver } from '../support/receiver.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { addressIn, exampleIn, makeWorld, placesOf, type World } from '../support/world.ts';
import { wrongBodies, wrongParameters } from '../support/wrong-fields.ts';

const posthorn = usePosthorn({
  env: {
    POSTHORN_INBOX: 'true',
    POSTHORN_MAX_BATCH_BYTES: '1MiB',
    POSTHORN_REQUEST_TIMEOUT_MS: '1s',
    // One for each tenant, four in all.
    POSTHORN_CHALLENGES_AT_ONCE: '4',
    POSTHORN_STREAM_CLIENTS_PER_KEY: '1',
    // Restores are accepted, and wait.
    POSTHORN_ARCHIVE_URL: 'file:///posthorn-missing-archive',
  },
});
const REMOTE_SETTINGS = {
  POSTHORN_ROLE: 'api',
  POSTHORN_METRICS: 'off',
  POSTHORN_ACCEPT_QUEUE_EVENTS: '1',
};
const EVENT_BYTES = 256 * 1024;

/** A server without a worker and without metrics. The test can disconnect its database. */
let remote: TestPosthorn;
/** A second server like `remote`, because only one event can wait in each. */
let alsoRemote: TestPosthorn;
let remoteDatabase: TestDatabase;
let proxy: TcpProxy;

let contract: Contract;
let matrix: ProblemMatrix;
let rejecting: Receiver;
let world: World;
/** Keys: of the tenant of `world`, of another tenant, a read key, and one that has used up its rate limit. */
const keys = { tenant: '', stranger: '', reader: '', limited: '' };

beforeAll(async () => {
  remoteDatabase = await createTestDatabase();
  proxy = await startTcpProxy(remoteDatabase.url);
  const startRemote = () => startTestPosthorn({ database: proxy, inProcess: true, env: REMOTE_SETTINGS });
  [remote, alsoRemote] = await Promise.all([startRemote(), startRemote()]);
  contract = new Contract((await expectStatus(posthorn.api('GET', '/openapi.json'), 200)).body);
  matrix = new ProblemMatrix(contract);
  rejecting = await startReceiver();
  rejecting.answer({ status: 404 });
  world = await makeWorld(posthorn, rejecting.url);
  keys.tenant = await newKey({ scope: 'tenant', tenant: world.tenant });
  keys.stranger = await newKey({ scope: 'tenant', tenant: newTenant() });
  keys.reader = await newKey({ scope: 'read' });
  keys.limited = await newKey({ scope: 'admin', rate_limit: { per_second: 0.001, burst: 1 } });
  await expectStatus(posthorn.api('GET', '/v1/keys/current', undefined, { key: keys.limited }), 200);
});
afterAll(async () => {
  await proxy?.restore();
  await Promise.all([remote?.stop(), alsoRemote?.stop()]);
  await proxy?.cut();
  await remoteDatabase?.drop();
  await rejecting?.close();
});

const ARCHIVED_DAY = '2020-01-15';
/** An event of a day that is in the archive. */
async function archivedEvent(): Promise<string> {
  const id = newEventId(Date.parse(`${ARCHIVED_DAY}T08:00:00Z`));
  await posthorn.database.query(
    `insert into posthorn.archive_parts (kind, day, part, partition, archive, rows, bytes, sha256, rows_sha256, min_id, max_id)
     values ('events', $1, 0, 'events_20200115', 'file:///archive', 1, 1, '', '', $2, $2)
         on conflict (kind, day, part) do update set min_id = $2, max_id = $2`,
    [ARCHIVED_DAY, id],
  );
  return publicId('evt', id);
}

async function newKey(settings: object): Promise<string> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body.key;
}

interface Request extends CallOptions {
  readonly in?: World;
  /** Replaces the example of the operation. */
  readonly body?: unknown;
  readonly query?: string;
  /** Replaces the last parameter of the path. */
  readonly named?: string;
}

const op = (name: string): ApiOperation => matrix.operation(name);

/** Calls an operation with its example, changed by `request`. */
function call(operation: ApiOperation | string, request: Request = {}): Promise<Answer> {
  const { in: place = world, query = '', named, ...options } = request;
  const called = typeof operation === 'string' ? op(operation) : operation;
  const body = 'body' in request ? request.body : exampleIn(place, contract.exampleOf(called));
  return posthorn.api(called.method, `${addressOf(called, place, named)}${query}`, body, options);
}

function addressOf({ path }: ApiOperation, place: World, named?: string): string {
  const last = placesOf(path).at(-1);
  if (named === undefined || last === undefined) return addressIn(place, path);
  return addressIn({ ...place, parameters: { ...place.parameters, [last]: named } }, path);
}

const isReading = ({ method, role }: ApiOperation): boolean => method === 'GET' && role !== 'admin';
const hasQuery = ({ operation }: ApiOperation, name: string): boolean =>
  operation.parameters?.some((parameter) => parameter.in === 'query' && parameter.name === name) === true;
/** Objects that belong to no tenant: every key may read them. */
const isShared = ({ path }: ApiOperation): boolean => path.startsWith('/v1/event-types');

/** Fields that change by themselves: reading an inbox postpones its expiry, and statistics are counted later. */
const MOVING = new Set(['expires_at', 'health']);

/** Reads all objects of `world`, and the lists that would show a change. */
async function lookAt({ tenant }: World): Promise<unknown> {
  const paths = [
    ...contract.operations.filter((o) => isReading(o) && /^\/v1\/[^{]+\{\w+\}$/.test(o.path)),
    ...['listInboxes', 'listEndpoints', 'listEvents', 'listTasks', 'listAuditEntries'].map(op),
  ].map(
    (operation) =>
      `${addressOf(operation, world)}${hasQuery(operation, 'tenant') ? `?tenant=${tenant}` : ''}`,
  );
  const shown = await Promise.all(
    paths.map(async (path) => (await expectStatus(posthorn.api('GET', path), 200)).text),
  );
  return shown.map((text) => JSON.parse(text, (name, value) => (MOVING.has(name) ? null : value)));
}

/** Provokes the problem in all operations that document it and have no test of their own. None of them may change anything. */
async function refuseAll(
  code: keyof typeof problemCodes,
  provoke: (operation: ApiOperation) => Promise<readonly (Answer | [Answer, path: string])[]>,
  operations = matrix.documenting(code),
): Promise<void> {
  expect(operations.length).toBeGreaterThan(0);
  const before = await lookAt(world);
  for (const operation of operations) {
    for (const result of await provoke(operation)) {
      const [answer, path] = Array.isArray(result) ? result : [result as Answer, undefined];
      matrix.refused(operation, code, answer, path);
    }
  }
  expect(await lookAt(world)).toEqual(before);
}

/** Sends a request with exactly these headers over a plain socket. */
async function raw(operation: ApiOperation, ...headers: string[]): Promise<Answer> {
  const line = `${operation.method} ${addressOf(operation, world)} HTTP/1.1`;
  const { answers } = await exchange(posthorn.url, [line, ...headers, '', ''].join('\r\n'));
  return toAnswer(answers[0]);
}
function toAnswer(answer: RawAnswer | undefined): Answer {
  const { status, headers, body } = answer!;
  return { status, headers, text: body, body: JSON.parse(body) };
}
const AUTHORIZED = `authorization: Bearer ${ADMIN_KEY}`;

describe('every operation succeeds', () => {
  /** Operations that need more than their example, or that have several success statuses. */
  const otherwise: Record<string, (place: World) => Promise<[status: number, answer: Answer][]>> = {
    createInbox: async (place) => [
      [201, await call('createInbox', { in: place, body: { tenant: place.tenant } })],
    ],
    deleteTenant: async () => {
      const named = newTenant();
      await expectStatus(call('putTenant', { named }), 201);
      const deleted = await call('deleteTenant', { named });
      await expectStatus(call('putTenant', { named }), 201);
      return [
        [204, deleted],
        [200, await call('deleteTenant', { named, query: '?expunge=true&dry_run=true' })],
        [202, await call('deleteTenant', { named, query: `?expunge=true&confirm=${named}` })],
      ];
    },
    discardDeadLetters: bulk('discardDeadLetters'),
    getApiReference: cached('getApiReference'),
    getOpenApiDocument: cached('getOpenApiDocument'),
    putEventType: put('putEventType'),
    putEventTypeVersion: async (place) => [
      [201, await call('putEventTypeVersion', { in: place, named: 'v2' })],
      [200, await call('putEventTypeVersion', { in: place, named: 'v2' })],
    ],
    putTenant: put('putTenant'),
    replayDeadLetters: bulk('replayDeadLetters'),
    replayEndpoint: async (place) => [
      [200, await call('replayEndpoint', { in: place, body: { dry_run: true } })],
      [202, await call('replayEndpoint', { in: place })],
    ],
    replayEvent: async (place) => [
      [200, await call('replayEvent', { in: place, body: { dry_run: true } })],
      [202, await call('replayEvent', { in: place })],
    ],
    restoreArchived: async () => {
      await archivedEvent();
      return [[202, await call('restoreArchived', { body: { day: ARCHIVED_DAY } })]];
    },
    restoreDelivery: async (place) => {
      await expectStatus(call('discardDelivery', { in: place }), 200);
      return [[200, await call('restoreDelivery', { in: place })]];
    },
    // Without a worker a task stays queued.
    cancelTask: async () => {
      const ordered = await remote.api('POST', '/v1/dead-letters/replay', { filter: {} });
      const { body } = await expectStatus(ordered, 202);
      return [[200, await remote.api('POST', `/v1/tasks/${body.id}/cancel`)]];
    },
  };
  function bulk(name: string) {
    return async (place: World): Promise<[number, Answer][]> => {
      const filter = { tenant: place.tenant, type: 'none.such' };
      return [
        [200, await call(name, { in: place, body: { filter, dry_run: true } })],
        [202, await call(name, { in: place, body: { filter } })],
      ];
    };
  }
  function put(name: string) {
    return async (): Promise<[number, Answer][]> => {
      const named = newTenant();
      return [
        [201, await call(name, { named })],
        [200, await call(name, { named, body: {} })],
      ];
    };
  }
  function cached(name: string) {
    return async (): Promise<[number, Answer][]> => {
      const first = await call(name);
      return [
        [200, first],
        [304, await call(name, { headers: { 'if-none-match': String(first.headers.etag) } })],
      ];
    };
  }

  test('with every success status that it documents', async () => {
    const changing = contract.operations.filter((operation) => !isReading(operation));
    const worlds = await Promise.all(changing.map(() => makeWorld(posthorn, rejecting.url)));
    for (const operation of contract.operations) {
      const place = worlds[changing.indexOf(operation)] ?? world;
      const recipe = otherwise[operation.name];
      const [good] = Object.keys(operation.operation.responses).filter((status) => status.startsWith('2'));
      const results =
        recipe === undefined
          ? [[Number(good), await call(operation, { in: place })] as const]
          : await recipe(place);
      for (const [status, answer] of results) matrix.answered(operation, status, answer);
    }
  });
});

const EVENT = { type: 'a.b', data: 1, tenant: 'remote' };
/** The answers to events that are sent while the database is away. They arrive while the other tests run. */
const held: { events: Promise<Answer>[]; batch: Promise<Answer> | null } = { events: [], batch: null };
/** Operations that do not use the database. */
const INDEPENDENT = new Set([
  'getHealth',
  'tryFilter',
  'streamEvents',
  'getCurrentKey',
  'getOpenApiDocument',
  'getApiReference',
  // Kafka is not configured here.
]);
/** Operations that answer differently without a database, and have their own tests. */
const APART = new Set(['publishEvent', 'publishBatch', 'getMetrics', 'getReadiness']);
const isRemote = ({ name, path }: ApiOperation): boolean =>
  !APART.has(name) && !path.startsWith('/v1/inboxes');

function callRemote(operation: ApiOperation, body = contract.exampleOf(operation)): Promise<Answer> {
  return remote.api(operation.method, addressIn(world, operation.path), body);
}

test('the other server loses its database', async () => {
  await proxy.cut();
  held.events = Array.from({ length: 8 }, () => callRemote(op('publishEvent'), EVENT));
  held.batch = alsoRemote.api('POST', '/v1/events/batch', {
    events: Array.from({ length: 8 }, () => EVENT),
  });
  await eventually('it notices', async () => (await callRemote(op('getReadiness'))).status === 503);
});

describe('whatever the operation', () => {
  test('no key, or an invalid key: 401', async () => {
    const elsewhere = { 'x-forwarded-for': '192.0.2.1' };
    await refuseAll('unauthorized', async (operation) => {
      // Metrics need a key only if the request comes from elsewhere.
      const headers = operation.role === null ? elsewhere : {};
      const answers = [
        await call(operation, { key: null, headers }),
        await call(operation, { key: 'phk_nobody', headers }),
      ];
      for (const answer of answers) expect(answer.headers['www-authenticate']).toBe('Bearer');
      return answers;
    });
  });

  test('a read key, or a key that is not an admin key: 403', async () => {
    const mine = matrix.documenting('forbidden').filter(({ role }) => role === 'write' || role === 'admin');
    await refuseAll(
      'forbidden',
      async (operation) => [
        await call(operation, { key: keys.reader }),
        ...(operation.role === 'admin' ? [await call(operation, { key: keys.tenant })] : []),
      ],
      mine,
    );
  });

  test('a key that may not be used from here: 403', async () => {
    const settings = { scope: 'admin', allowed_ips: ['192.0.2.1'] };
    const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201);
    const headers = { via: 'a proxy' };
    await refuseAll('forbidden', async (operation) => [await call(operation, { key: body.key, headers })]);
  });

  test('another tenant than that of the key, in the query or in the body: 403', async () => {
    const query = matrix.documenting('forbidden').filter((o) => o.role === 'read' && hasQuery(o, 'tenant'));
    await refuseAll(
      'forbidden',
      async (operation) => [
        [
          await call(operation, { query: `?tenant=${world.tenant}`, key: keys.stranger, body: undefined }),
          'tenant',
        ],
      ],
      query,
    );
    const { tenant } = world;
    const filter = { tenant };
    for (const [name, body, path] of [
      ['createEndpoint', { url: 'https://example.com/', tenant }, 'tenant'],
      ['createInbox', { tenant }, 'tenant'],
      ['publishEvent', { type: 'a.b', data: 1, tenant }, 'tenant'],
      ['replayDeadLetters', { filter }, 'filter.tenant'],
      ['discardDeadLetters', { filter }, 'filter.tenant'],
      ['tryFilter', { filter: null, event: { type: 'a.b', data: 1, tenant } }, 'event.tenant'],
      ['countFilterMatches', { filter: null, tenant }, 'tenant'],
      ['estimateRequests', { tenant }, 'tenant'],
    ] as const)
      matrix.refused(op(name), 'forbidden', await call(name, { body, key: keys.stranger }), path);
    matrix.refused(op('listTenants'), 'forbidden', await call('listTenants', { key: keys.stranger }));
    const elsewhere = { key: keys.tenant, headers: { via: 'a proxy' } };
    matrix.refused(op('getMetrics'), 'forbidden', await call('getMetrics', elsewhere));
  });

  test('an unknown id, an invalid id, or an object of another tenant: 404', async () => {
    const creating = new Set(['putTenant', 'putEventType', 'putEventTypeVersion', 'checkEventTypeVersion']);
    const metrics = op('getMetrics');
    matrix.refused(metrics, 'not_found', await remote.api('GET', metrics.path));
    await refuseAll(
      'not_found',
      async (operation) => {
        const tooLong = await call(operation, { named: 'x'.repeat(201) });
        if (creating.has(operation.name)) return [tooLong];
        const known = world.parameters[placesOf(operation.path).at(-1)!]!;
        // A name that could exist: an id of the right kind, or the number of an attempt that was not made.
        const named = known === '1' ? '7' : known.replace(/(?<=_)\w+$/, (id) => '0'.repeat(id.length));
        return [
          tooLong,
          await call(operation, { named: 'none-such' }),
          ...(named === known ? [] : [await call(operation, { named })]),
          ...(operation.role === 'admin' || isShared(operation)
            ? []
            : [await call(operation, { key: keys.stranger })]),
        ];
      },
      matrix
        .documenting('not_found')
        .filter((operation) => operation !== metrics && operation.name !== 'restoreArchived'),
    );
    const day = { day: '2019-01-01' };
    matrix.refused(op('restoreArchived'), 'not_found', await call('restoreArchived', { body: day }));
  });

  test('a malformed request: 400', async () => {
    await refuseAll('bad_request', async (operation) => [
      // No host.
      await raw(operation, AUTHORIZED),
      ...(operation.path.includes('{')
        ? [await posthorn.api(operation.method, operation.path.replace(/\{\w+\}/g, '%zz'))]
        : []),
    ]);
  });

  test('a body that is not JSON: 400', async () => {
    await refuseAll('malformed_json', async (operation) => [
      await call(operation, { body: '{"events":\n [}' }),
      await call(operation, { body: Buffer.from([0x22, 0xff, 0x22]) }),
    ]);
    expect((await call('updateEndpoint', { body: '{"url":\n !}' })).body.detail).toContain('line 2');
  });

  test('a body that is too large: 413', async () => {
    const length = 'content-length: 1100000';
    await refuseAll('too_large', async (operation) => [
      await raw(operation, 'host: posthorn', AUTHORIZED, 'content-type: application/json', length),
    ]);
    const data = 'x'.repeat(EVENT_BYTES);
    for (const [name, body, path] of [
      ['publishEvent', { type: 'a.b', data, tenant: world.tenant }, 'data'],
      ['sendTestEvent', { data }, 'data'],
      ['tryFilter', { filter: null, event: { type: 'a.b', data } }, 'event.data'],
    ] as const)
      matrix.refused(op(name), 'too_large', await call(name, { body }), path);
  });

  test('a body with another content type: 415', async () => {
    await refuseAll('unsupported_media_type', async (operation) => [
      await call(operation, { body: 'a=b', headers: { 'content-type': 'text/plain' } }),
      await call(operation, { body: '{}', headers: { 'content-encoding': 'gzip' } }),
    ]);
  });

  test('an unknown field or parameter: 422, which names it', async () => {
    await refuseAll('invalid', async (operation) => {
      const { method, operation: described } = operation;
      if (method === 'GET') return [[await call(operation, { query: '?surprise=1' }), 'surprise']];
      const body = { ...(contract.exampleOf(operation) as object), surprise: 1 };
      const isKeyed = described.parameters?.some(({ name }) => name === 'Idempotency-Key');
      const headers = { 'idempotency-key': 'k'.repeat(256) };
      return [
        [await call(operation, { body }), 'surprise'],
        ...(isKeyed && !operation.path.startsWith('/v1/events')
          ? [[await call(operation, { headers }), 'idempotency-key'] as [Answer, string]]
          : []),
      ];
    });
  });

  test('an invalid cursor: 400', async () => {
    await refuseAll('bad_cursor', async (operation) => [
      [await call(operation, { query: '?cursor=nonsense' }), 'cursor'],
    ]);
  });

  test('a key beyond its rate limit: 429', async () => {
    const headers = { 'x-real-ip': '192.0.2.1' };
    await refuseAll('rate_limited', async (operation) => [
      await call(operation, { key: keys.limited, headers: operation.role === null ? headers : {} }),
    ]);
  });

  test('an idempotency key that was used for another request: 409', async () => {
    const keyed = matrix.documenting('idempotency_conflict').filter(({ name }) => name !== 'publishEvent');
    const used = { pauseEndpoint: randomUUID(), resumeEndpoint: randomUUID() };
    for (const [name, key] of Object.entries(used))
      await expectStatus(call(name, { headers: { 'idempotency-key': key } }), 200);
    await refuseAll(
      'idempotency_conflict',
      async (operation) => {
        const key = operation.name === 'pauseEndpoint' ? used.resumeEndpoint : used.pauseEndpoint;
        return [[await call(operation, { headers: { 'idempotency-key': key } }), 'idempotency-key']];
      },
      keyed,
    );
  });

  test('the same request several times at once: one runs, the others are 409', async () => {
    // Earlier operations change the state, so some requests are refused with a conflict. That counts as an answer too.
    const place = await makeWorld(posthorn, rejecting.url);
    for (const operation of matrix.documenting('request_in_progress')) {
      // Usually all but one are refused, but the first answer may arrive before the last request.
      const refused = await eventually(`${operation.name} is under way`, async () => {
        const headers = { 'idempotency-key': randomUUID() };
        const answers = await Promise.all([1, 2, 3, 4].map(() => call(operation, { in: place, headers })));
        const busy = answers.filter(({ body }) => body?.code === 'request_in_progress');
        const carriedOut = answers.filter(
          (answer) => !busy.includes(answer) && answer.headers['idempotency-replayed'] === undefined,
        );
        expect(carriedOut, operation.name).toHaveLength(1);
        return busy[0];
      });
      matrix.refused(operation, 'request_in_progress', refused);
    }
  });
});

describe('without an operation', () => {
  test('an unknown address or method', async () => {
    matrix.refusedAnyhow('not_found', await posthorn.api('GET', '/v1/none-such'));
    const answer = await posthorn.api('PUT', '/v1/endpoints');
    matrix.refusedAnyhow('method_not_allowed', answer);
    expect(answer.headers.allow).toBe('GET, HEAD, POST');
    // Without a key, the answer reveals only what /openapi.json says.
    const unknown = await posthorn.api('DELETE', addressOf(op('getEvent'), world), undefined, { key: null });
    expect(unknown).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });

  test('headers that are too large, and a request that is never complete', async () => {
    for (const operation of contract.operations)
      matrix.refusedAnyhow('headers_too_large', await raw(operation, `x-large: ${'x'.repeat(17_000)}`));
    const unfinished = `POST /v1/events HTTP/1.1\r\nhost: posthorn\r\n${AUTHORIZED}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`;
    const { answers } = await exchange(posthorn.url, unfinished);
    matrix.refusedAnyhow('request_timeout', toAnswer(answers[0]));
  });

  test('an internal error: 500, without details', async () => {
    const { database } = posthorn;
    await database.query('alter table posthorn.audit_log rename to somewhere_else');
    const answer = await call('listAuditEntries');
    await database.query('alter table posthorn.somewhere_else rename to audit_log');
    matrix.refusedAnyhow('internal', answer);
    expect(answer.text).not.toMatch(/audit_log|relation/);
  });
});

test('an invalid request names the field', async () => {
  const { id } = await createEndpoint(posthorn, { url: rejecting.url, tenant: newTenant() });
  for (const [name, path, body] of wrongBodies(world.tenant, id))
    matrix.refused(op(name), 'invalid', await call(name, { body }), path);
  matrix.refused(op('putTenant'), 'invalid', await call('putTenant', { named: ' ' }), 'id');
  matrix.refused(
    op('putEventType'),
    'invalid',
    await call('putEventType', { named: 'posthorn.mine' }),
    'name',
  );

  for (const operation of contract.operations)
    for (const [name, value] of Object.entries(wrongParameters).filter(([parameter]) =>
      hasQuery(operation, parameter),
    ))
      matrix.refused(operation, 'invalid', await call(operation, { query: `?${name}=${value}` }), name);
  const both = await call('streamEvents', { query: '?status=dead&outcome=retry' });
  matrix.refused(op('streamEvents'), 'invalid', both, 'outcome');
});

test('an event that is in the archive', async () => {
  const named = await archivedEvent();
  for (const name of ['getEvent', 'listEventDeliveries', 'listEventAttempts', 'replayEvent'])
    matrix.refused(op(name), 'archived', await call(name, { named }));
  const mine = { named, key: keys.tenant };
  const refused = await call('getEvent', mine);
  expect(refused.body.detail).not.toContain('file://');
  matrix.refused(op('expungeEventPayload'), 'archived', await call('expungeEventPayload', mine));
});

describe('a conflict with the current state', () => {
  test('a restore where there is no archive', async () => {
    await archivedEvent();
    const env = { POSTHORN_ROLE: 'api', POSTHORN_METRICS: 'off' };
    const other = await startTestPosthorn({ database: posthorn.database, inProcess: true, env });
    onTestFinished(() => other.stop());
    const answer = await other.api('POST', '/v1/archive/restore', { day: ARCHIVED_DAY });
    matrix.refused(op('restoreArchived'), 'conflict', answer);
  });

  test('a disabled or deleted endpoint', async () => {
    const place = await makeWorld(posthorn, rejecting.url);
    const before = (await call('listEndpointDeliveries', { in: place })).body.data.length;
    await expectStatus(call('updateEndpoint', { in: place, body: { enabled: false } }), 200);
    for (const name of ['sendTestEvent', 'probeEndpoint', 'replayEndpoint', 'replayDelivery', 'replayEvent'])
      matrix.refused(op(name), 'conflict', await call(name, { in: place }));
    expect((await call('listEndpointDeliveries', { in: place })).body.data).toHaveLength(before);
    await expectStatus(call('deleteEndpoint', { in: place }), 204);
    matrix.refused(op('replayDelivery'), 'conflict', await call('replayDelivery', { in: place }));
    expect((await call('getDelivery', { in: place })).body).toMatchObject({ status: 'dead', replays: 0 });
  });

  test('a delivery that is not dead, or not discarded; a task that has ended; a tenant that has endpoints', async () => {
    const place = await makeWorld(posthorn, rejecting.url);
    for (const name of ['restoreDelivery', 'cancelTask', 'deleteTenant'])
      matrix.refused(op(name), 'conflict', await call(name, { in: place }));
    await expectStatus(call('discardDelivery', { in: place }), 200);
    matrix.refused(op('discardDelivery'), 'conflict', await call('discardDelivery', { in: place }));
    expect((await call('getDelivery', { in: place })).body.status).toBe('discarded');
    await expectStatus(call('getTenant', { in: place }), 200);
  });

  test('a tenant whose data is being deleted', async () => {
    const place = await makeWorld(posthorn, rejecting.url);
    const { tenant } = place;
    const query = `?expunge=true&confirm=${tenant}`;
    await expectStatus(call('deleteTenant', { in: place, query }), 202);
    matrix.refused(op('deleteTenant'), 'conflict', await call('deleteTenant', { in: place, query }));
    const event = { type: 'a.b', data: 1, tenant };
    matrix.refused(op('publishEvent'), 'conflict', await call('publishEvent', { body: event }));
    const batch = [event, { ...event, tenant: world.tenant }];
    const [refused, accepted] = (await call('publishBatch', { body: { events: batch } })).body.results;
    matrix.refusedItem('conflict', refused);
    expect(accepted).toMatchObject({ tenant: world.tenant });
    const endpoint = { tenant, url: rejecting.url };
    matrix.refused(op('createEndpoint'), 'conflict', await call('createEndpoint', { body: endpoint }));
    matrix.refused(
      op('createKey'),
      'conflict',
      await call('createKey', { body: { scope: 'tenant', tenant } }),
    );
    matrix.refused(
      op('createPortalSession'),
      'conflict',
      await call('createPortalSession', { body: { tenant } }),
    );
    matrix.refused(op('createInbox'), 'conflict', await call('createInbox', { body: { tenant } }));
    const notifier = { kind: 'slack', ...endpoint };
    matrix.refused(op('createNotifier'), 'conflict', await call('createNotifier', { body: notifier }));
  });

  test('a notifier that is disabled', async () => {
    const place = await makeWorld(posthorn, rejecting.url);
    await posthorn.database.query(
      "update posthorn.endpoints set enabled = false, disabled_reason = 'gone' where tenant = $1 and config ? 'notifier'",
      [place.tenant],
    );
    matrix.refused(op('testNotifier'), 'conflict', await call('testNotifier', { in: place }));
  });

  test('an endpoint that another request changes while its receiver is challenged', async () => {
    const receiver = await newReceiver();
    const place = await makeWorld(posthorn, rejecting.url);
    await expectStatus(call('updateEndpoint', { in: place, body: { url: receiver.url } }), 200);
    receiver.hang();
    const challenged = call('updateEndpoint', { in: place, body: { challenge: 'echo' } });
    await receiver.waitFor(1);
    const elsewhere = { url: `${receiver.url}/elsewhere` };
    await expectStatus(call('updateEndpoint', { in: place, body: elsewhere }), 200);
    receiver.answer(echo);
    receiver.release();
    matrix.refused(op('updateEndpoint'), 'conflict', await challenged);
    expect((await call('getEndpoint', { in: place })).body).toMatchObject({ ...elsewhere, challenge: null });
  });

  test('too many inboxes of a tenant', async () => {
    const tenant = newTenant();
    const made: string[] = [];
    const create = () => call('createInbox', { body: { tenant } });
    for (let n = 0; n < 20; n += 1) made.push((await expectStatus(create(), 201)).body.token);
    matrix.refused(op('createInbox'), 'conflict', await create());
    for (const token of made) await expectStatus(call('deleteInbox', { named: token }), 204);
  });

  test('too many versions of an event type', async () => {
    const place = await makeWorld(posthorn, rejecting.url);
    for (let n = 2; n <= 100; n += 1)
      await expectStatus(call('putEventTypeVersion', { in: place, named: `v${n}`, body: {} }), 201);
    const refused = await call('putEventTypeVersion', { in: place, named: 'v101', body: {} });
    matrix.refused(op('putEventTypeVersion'), 'conflict', refused);
  });

  test('a payload that does not match the catalogue, where that is strict', async () => {
    const type = `${newTenant()}.strict`;
    const body = { schema: { type: 'object' }, validation: 'strict' };
    await expectStatus(call('putEventType', { named: type, body }), 201);
    const event = { type, data: 1, tenant: newTenant() };
    matrix.refused(
      op('publishEvent'),
      'payload_invalid',
      await call('publishEvent', { body: event }),
      'data',
    );
    const [item] = (await call('publishBatch', { body: { events: [event] } })).body.results;
    matrix.refusedItem('payload_invalid', item);
  });

  test('an idempotency key of another event', async () => {
    const event = { type: 'a.b', data: 1, tenant: newTenant(), idempotency_key: 'k' };
    const { id } = await publish(posthorn, event);
    const again = await call('publishEvent', { body: { ...event, data: 2 } });
    matrix.refused(op('publishEvent'), 'idempotency_conflict', again, 'idempotency_key');
    expect((await publish(posthorn, event)).id).toBe(id);
  });
});

const echo: Behaviour = (request) => ({ body: request.json().data?.challenge });

describe('receivers', () => {
  /** Sets the URL by POST and by PATCH. Checks that the refused requests changed nothing. */
  async function refuseReceiver(
    code: keyof typeof problemCodes,
    settings: object,
    path?: string,
  ): Promise<void> {
    const { tenant } = place;
    // Without `health`, because statistics are counted a moment after a delivery.
    const endpoints = async () =>
      (await call('listEndpoints', { query: `?tenant=${tenant}` })).body.data.map(
        ({ health: _figures, ...endpoint }: Record<string, unknown>) => endpoint,
      );
    const before = await endpoints();
    expect(before).not.toEqual([]);
    const created = await call('createEndpoint', { body: { tenant, url: rejecting.url, ...settings } });
    matrix.refused(op('createEndpoint'), code, created, path);
    const updated = await call('updateEndpoint', { in: place, body: settings });
    matrix.refused(op('updateEndpoint'), code, updated, path);
    expect(await endpoints()).toEqual(before);
  }

  let place: World;
  beforeAll(async () => {
    place = await makeWorld(posthorn, rejecting.url);
  });

  test('invalid and forbidden URLs, and receivers that do not consent', async () => {
    const oauth = { type: 'oauth2', client_id: 'a', client_secret: 'b' };
    await refuseReceiver('url_invalid', { url: 'ftp://example.com/' }, 'url');
    await refuseReceiver('url_invalid', { auth: { ...oauth, token_url: 'nowhere' } }, 'auth.token_url');
    await refuseReceiver('url_forbidden', { url: 'https://10.0.0.1/' }, 'url');
    await refuseReceiver('url_forbidden', { url: 'http://example.com/' }, 'url');
    const metadata = 'https://169.254.169.254/token';
    await refuseReceiver('url_forbidden', { auth: { ...oauth, token_url: metadata } }, 'auth.token_url');
    await refuseReceiver('challenge_failed', { challenge: 'echo' }, 'url');
    for (const [code, url] of [
      ['url_invalid', 'ftp://example.com/'],
      ['url_forbidden', 'https://10.0.0.1/'],
    ] as const)
      matrix.refused(
        op('createNotifier'),
        code,
        await call('createNotifier', { body: { kind: 'slack', url } }),
      );
  });

  test('a second endpoint with the same URL and events, with POSTHORN_UNIQUE_ENDPOINTS=on', async () => {
    const env = { POSTHORN_ROLE: 'api', POSTHORN_METRICS: 'off', POSTHORN_UNIQUE_ENDPOINTS: 'on' };
    const unique = await startTestPosthorn({ database: posthorn.database, inProcess: true, env });
    onTestFinished(() => unique.stop());
    const tenant = newTenant();
    const create = (url: string) => unique.api('POST', '/v1/endpoints', { tenant, url });
    await expectStatus(create('https://example.com/a'), 201);
    const { body: other } = await expectStatus(create('https://example.com/b'), 201);
    const again = await create('https://example.com/a');
    matrix.refused(op('createEndpoint'), 'endpoint_exists', again, 'url');
    const moved = await unique.api('PATCH', `/v1/endpoints/${other.id}`, { url: 'https://example.com/a' });
    matrix.refused(op('updateEndpoint'), 'endpoint_exists', moved, 'url');
  });

  test('too many challenges in progress, of a tenant or in total', async () => {
    const slow = await newReceiver();
    slow.hang();
    const create = (tenant: string) =>
      call('createEndpoint', { body: { tenant, url: slow.url, challenge: 'echo' } });
    const update = (place: World) =>
      call('updateEndpoint', { in: place, body: { url: slow.url, challenge: 'echo' } });
    const places = [
      await makeWorld(posthorn, rejecting.url),
      await makeWorld(posthorn, rejecting.url),
    ] as const;
    const hanging = [create(places[0].tenant)];
    await slow.waitFor(1);
    matrix.refused(op('createEndpoint'), 'rate_limited', await create(places[0].tenant));
    matrix.refused(op('updateEndpoint'), 'rate_limited', await update(places[0]));
    for (const tenant of [newTenant(), newTenant(), newTenant()]) hanging.push(create(tenant));
    await slow.waitFor(4);
    matrix.refused(op('createEndpoint'), 'overloaded', await create(newTenant()));
    matrix.refused(op('updateEndpoint'), 'overloaded', await update(places[1]));
    slow.answer(echo);
    slow.release();
    await Promise.all(hanging);
    expect((await call('getEndpoint', { in: places[1] })).body.challenge).toBeNull();
  });
});

test('a tenant beyond its rate limit, and too many live tails of a key', async () => {
  const tenant = newTenant();
  const body = { ingest_rate_limit: { per_second: 0.001, burst: 1 } };
  await expectStatus(call('putTenant', { named: tenant, body }), 201);
  const event = { type: 'a.b', data: 1, tenant };
  await eventually('the limit holds', async () => {
    const answer = await call('publishEvent', { body: event });
    if (answer.status === 202) return false;
    matrix.refused(op('publishEvent'), 'rate_limited', answer);
    return true;
  });
  const [item] = (await call('publishBatch', { body: { events: [event] } })).body.results;
  matrix.refusedItem('rate_limited', item);

  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const open = await fetch(`${posthorn.url}/v1/stream`, {
    headers: { authorization: `Bearer ${keys.reader}` },
    signal: abort.signal,
  });
  expect(open.status).toBe(200);
  matrix.refused(op('streamEvents'), 'rate_limited', await call('streamEvents', { key: keys.reader }));
});

test('each event of a batch is refused on its own', async () => {
  const { tenant } = world;
  const idempotency_key = randomUUID();
  const good = { type: 'a.b', data: 1 };
  const { body } = await call('publishBatch', {
    key: keys.tenant,
    body: {
      events: [
        { ...good, idempotency_key },
        { ...good, tenant: 'another' },
        { ...good, type: 'a b' },
        1,
        { ...good, data: 'x'.repeat(EVENT_BYTES) },
        { ...good, data: 2, idempotency_key },
        good,
      ],
    },
  });
  const [first, foreign, untyped, number, large, repeated, last] = body.results;
  expect([first, last]).toMatchObject([{ tenant }, { tenant }]);
  matrix.refusedItem('forbidden', foreign, 'tenant');
  matrix.refusedItem('invalid', untyped, 'type');
  matrix.refusedItem('invalid', number, 'body');
  matrix.refusedItem('too_large', large, 'data');
  matrix.refusedItem('idempotency_conflict', repeated, 'idempotency_key');
});

test('a delivery that other transactions keep changing: 503', async () => {
  const place = await makeWorld(posthorn, rejecting.url);
  const client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  onTestFinished(() => client.end());
  // Simulates other transactions that change the delivery first, five times in a row.
  await client.query(`create function never() returns trigger language plpgsql as 'begin return null; end';
    create trigger never before update on posthorn.dead_letters for each row
      when (old.tenant = '${place.tenant}') execute function never()`);
  matrix.refused(op('replayDelivery'), 'unavailable', await call('replayDelivery', { in: place }));
  await client.query('drop trigger never on posthorn.dead_letters');
  await expectStatus(call('replayDelivery', { in: place }), 202);
});

describe('the database does not answer', () => {
  test('every operation that needs the database is 503', async () => {
    const readiness = op('getReadiness');
    matrix.answered(readiness, 503, await callRemote(readiness));
    for (const operation of contract.operations.filter(isRemote)) {
      const answer = await callRemote(operation);
      if (INDEPENDENT.has(operation.name)) expect(answer.status, operation.name).toBe(200);
      else matrix.refusedAnyhow('unavailable', answer);
    }
    for (const operation of matrix.documenting('unavailable').filter(isRemote))
      matrix.refused(operation, 'unavailable', await callRemote(operation));
  });

  test('a limited number of events waits for a limited time', async () => {
    const answers = await Promise.all(held.events);
    const { results } = (await held.batch!).body;
    for (const code of ['overloaded', 'unavailable'] as const) {
      matrix.refused(op('publishEvent'), code, answers.find(({ body }) => body.code === code)!);
      matrix.refusedItem(
        code,
        results.find((result: Answer['body']) => result.error.code === code),
      );
    }
    expect(answers.filter(({ status }) => status !== 503)).toEqual([]);
  });

  test('after the database is back, all operations succeed', async () => {
    await proxy.restore();
    await eventually('it is ready again', async () => (await callRemote(op('getReadiness'))).status === 200);
    await expectStatus(callRemote(op('publishEvent'), EVENT), 202);
    const { body } = await remote.api('GET', '/v1/events');
    expect(body.data).toHaveLength(1);
  });
});

test('exactly the documented answers have been seen', () => {
  const { documented, seen } = matrix;
  expect(
    documented.filter((pair) => !seen.includes(pair)),
    'documented, and never seen: provoke it in test/extended/documented-errors.test.ts, or do not document it',
  ).toEqual([]);
  expect(
    seen.filter((pair) => !documented.includes(pair)),
    'seen, and not documented: name it in `problems` of the route’s schema (src/api/openapi/describe.ts)',
  ).toEqual([]);
  const codes = new Set(seen.map((pair) => pair.split(' ').at(-1)));
  expect(
    Object.keys(problemCodes).filter((code) => !codes.has(code)),
    'codes that nobody ever gets',
  ).toEqual([]);
  expect(documented.length).toBeGreaterThan(500);
});
