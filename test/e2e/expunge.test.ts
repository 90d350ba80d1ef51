import { createHash } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  deliveryIdOf,
  firstIdAt,
  type IdPrefix,
  idPrefixes,
  newEventId,
  newId,
  parsePublicId,
  publicId,
} from '../../src/domain/ids.ts';
import { ADVISORY_LOCKS } from '../../src/postgres/advisory-locks.ts';
import {
  deleteTenantRows,
  expungeOperationalEvents,
  hasUncountedStatistics,
  WHOLE_TENANT,
} from '../../src/postgres/queries/expunge-tenant.ts';
import { replayDeliveries } from '../../src/postgres/queries/replay.ts';
import { eventually } from '../support/eventually.ts';
import { insertRejectedRecord } from '../support/kafka/rejected-record.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';

const SECRET = 'very-private-thing';
/** A delivery of no tenant of this test. */
const FOREIGN = publicId('dlv', deliveryIdOf(newEventId(Date.now()), 0));
/** Of endpoints: in no table in plain text, and nowhere after the expunge. */
const HEADER_VALUE = 'very-private-header';
const posthorn = usePosthorn({
  env: {
    POSTHORN_INBOX: 'true',
    POSTHORN_EXPUNGE_SETTLE_MS: '500ms',
    POSTHORN_STATS_FLUSH_MS: '100ms',
    POSTHORN_UPKEEP_MS: '300ms',
  },
});
const { api } = posthorn;

/** Columns with values that contain this text in the samples of ANALYZE. */
const samplesWith = (text: string): Promise<unknown[]> =>
  posthorn.database.query(
    `select s.tablename, s.attname
       from pg_stats s, concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text) as samples
      where s.schemaname = 'posthorn' and (strpos(samples, $1) > 0 or strpos(samples, $2) > 0)`,
    [text, Buffer.from(text).toString('hex')],
  );

/** Every table and column of the database that contains this text, in any form. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await posthorn.database.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'posthorn'::regnamespace and relkind = 'r' order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const hex = Buffer.from(text).toString('hex');
    const rows = await posthorn.database.query(
      `select 1 from posthorn.${name} t where t::text like $1 or t::text like $2 limit 1`,
      [`%${text}%`, `%${hex}%`],
    );
    if (rows.length > 0) found.push(name);
  }
  return found;
}

test('LIF-3: the payload of an event is gone from every table, with what receivers echoed', async () => {
  const tenant = newTenant();
  const [failing, delivered, dying] = [await newReceiver(), await newReceiver(), await newReceiver()];
  failing.answer(({ body }) => ({ status: 500, body: `cannot take ${body}` }));
  delivered.answer(({ body }) => ({ status: 200, body: `took ${body}` }));
  dying.answer(({ body }) => ({ status: 400, body: `bad ${body}` }));
  const inbox = (await expectStatus(api('POST', '/v1/inboxes', { tenant }), 201)).body;
  for (const url of [failing.url, delivered.url, dying.url, inbox.url])
    await createEndpoint(posthorn, { tenant, url, retry: { schedule: [0, 3600] } });
  const schema = { type: 'object', properties: { email: {} }, additionalProperties: false };
  await expectStatus(api('PUT', '/v1/event-types/person.created', { schema, validation: 'warn' }), 201);
  const event = await publish(posthorn, {
    tenant,
    type: 'person.created',
    // The error of an unknown field names the field.
    data: { email: SECRET, [SECRET]: 1 },
    headers: { 'x-user': SECRET },
    idempotency_key: 'user-1',
  });
  await untilEnded(event.id, ['dead', 'delivered', 'delivered', 'retrying']);
  await posthorn.database.query("insert into posthorn.converted_payloads values ($1, 'v1', 'ab', $2)", [
    parsePublicId('evt', event.id),
    Buffer.from(SECRET),
  ]);
  await eventually('the failure of the schema is recorded', async () =>
    (await tablesWith(SECRET)).includes('schema_failures'),
  );
  // A column has samples if two of its values differ.
  const other = { tenant, type: 'person.created', data: { email: 'x' }, headers: { 'x-user': 'y' } };
  await untilEnded((await publish(posthorn, other)).id, ['dead', 'delivered', 'delivered', 'retrying']);
  await posthorn.database.query('analyze');

  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  expect(await tablesWith(SECRET)).toEqual([]);
  expect(await samplesWith(SECRET)).toEqual([]);
  const shown = (await expectStatus(api('GET', `/v1/events/${event.id}`), 200)).body;
  expect(shown).toMatchObject({ data: null, headers: {}, expunged_by: 'admin' });
  expect(Date.parse(shown.expunged_at)).toBeGreaterThan(Date.parse(event.created_at));
  const deliveries = await deliveriesOf(posthorn, event.id);
  expect(deliveries.map(({ status, reason }) => `${status} ${reason}`).sort()).toEqual([
    'delivered null',
    'delivered null',
    'discarded expunged',
    'skipped expunged',
  ]);
  for (const { id } of deliveries)
    expect(await attemptsOf(posthorn, id)).toMatchObject([{ number: 1, response_body: null }]);

  // No request brings the payload back.
  await expectStatus(api('POST', `/v1/events/${event.id}/replay`, {}), 409);
  const discarded = deliveries.find(({ status }) => status === 'discarded')!;
  await expectStatus(api('POST', `/v1/deliveries/${discarded.id}/replay`), 409);
  await expectStatus(api('POST', `/v1/deliveries/${discarded.id}/restore`), 409);
  const repeated = {
    tenant,
    type: 'person.created',
    data: { email: SECRET, [SECRET]: 1 },
    idempotency_key: 'user-1',
  };
  await expectStatus(api('POST', '/v1/events', repeated), 409);
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  const entries = await expectStatus(api('GET', `/v1/audit?action=event.expunge&object_id=${event.id}`), 200);
  expect(entries.body.data).toHaveLength(1);
  // The log has ids, no payloads, headers or answers.
  expect(posthorn.output()).not.toBe('');
  expect(posthorn.output()).not.toContain(SECRET);
});

describe('LIF-3: a batch with the event', () => {
  const BATCH = { max_events: 2, max_wait_ms: 10_000 };
  const echo = ({ body }: { readonly body: Buffer }) => ({
    status: 200,
    headers: { 'x-echo': body.toString().slice(0, 500) },
    body: `took ${body}`,
  });

  test('the answers that are stored with its other events are gone, and so is its copy in an inbox', async () => {
    const secret = 'thing-in-a-batch';
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(echo);
    const inbox = (await expectStatus(api('POST', '/v1/inboxes', { tenant }), 201)).body;
    for (const url of [receiver.url, inbox.url])
      await createEndpoint(posthorn, { tenant, url, batch: BATCH });
    const data = [{ email: secret }, { n: 2 }];
    const [first, second] = await publishAll(posthorn, { tenant, type: 'a.b', data });
    for (const id of [first!, second!]) await untilEnded(id, ['delivered', 'delivered']);
    const before = await attemptsOf(posthorn, (await deliveriesOf(posthorn, second!))[0]!.id);
    expect(await tablesWith(secret)).toContain('inbox_requests');

    await expectStatus(api('DELETE', `/v1/events/${first}/payload`), 204);
    expect(await tablesWith(secret)).toEqual([]);
    expect((await expectStatus(api('GET', `/v1/events/${second}`), 200)).body.data).toEqual({ n: 2 });
    const [delivery] = await deliveriesOf(posthorn, second!);
    expect(await attemptsOf(posthorn, delivery!.id)).toEqual([
      { ...before[0], response_body: null, response_headers: null },
    ]);
    // The request of the other event cannot be shown any more.
    await expectStatus(api('GET', `/v1/deliveries/${delivery!.id}/attempts/1/request`), 404);
  });

  test('both events of a batch can be expunged at the same time', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer(echo);
    await createEndpoint(posthorn, { tenant, url: receiver.url, batch: BATCH });
    const secrets = ['one-of-two-things', 'two-of-two-things'];
    const ids = await publishAll(posthorn, { tenant, type: 'a.b', data: secrets });
    for (const id of ids) await untilEnded(id, ['delivered']);
    await Promise.all(ids.map((id) => expectStatus(api('DELETE', `/v1/events/${id}/payload`), 204)));
    for (const secret of secrets) expect(await tablesWith(secret)).toEqual([]);
  });

  test('an answer that arrives after the expunge is deleted by upkeep', async () => {
    const secret = 'thing-on-the-wire';
    const tenant = newTenant();
    const receiver = await newReceiver();
    const { promise: answered, resolve: letAnswer } = Promise.withResolvers<void>();
    receiver.answer((request) => answered.then(() => echo(request)));
    await createEndpoint(posthorn, { tenant, url: receiver.url, batch: BATCH });
    const data = [{ email: secret }, { n: 2 }];
    const [first, second] = await publishAll(posthorn, { tenant, type: 'a.b', data });
    await receiver.waitFor(1);
    await expectStatus(api('DELETE', `/v1/events/${first}/payload`), 204);
    letAnswer();
    await untilEnded(second!, ['delivered']);
    await expect.poll(() => tablesWith(secret), { timeout: 10_000 }).toEqual([]);
    expect(await deliveriesOf(posthorn, first!)).toMatchObject([{ status: 'skipped', reason: 'expunged' }]);
  });

  test('a batch that was composed long ago, without any recorded attempt, is marked at once', async () => {
    const tenant = newTenant();
    const { id: endpoint } = await createEndpoint(posthorn, {
      tenant,
      url: 'http://127.0.0.1:9/',
      paused: true,
    });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: SECRET });
    const batch = newId(Date.now() - 3_600_000);
    await posthorn.database.query(
      `with recorded as (insert into posthorn.batches (id, endpoint_id, delivery_ids) values ($1, $2, array[$3::uuid]))
       insert into posthorn.open_batches (id, endpoint_id, started_at) values ($1, $2, now())`,
      [batch, parsePublicId('ep', endpoint), deliveryIdOf(parsePublicId('evt', event.id)!, 0)],
    );
    await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
    expect(
      await posthorn.database.query("select from posthorn.expunged where kind = 'batch' and id = $1", [
        batch,
      ]),
    ).toHaveLength(1);
    // Upkeep looks for late results of a batch as long as it is open.
    await posthorn.database.query('delete from posthorn.open_batches where id = $1', [batch]);
  });

  test('upkeep finds a batch that was recorded during the expunge, and an old one by its attempts', async () => {
    const tenant = newTenant();
    const [expunged, other] = [newEventId(Date.now()), newEventId(Date.now())];
    const [batch, endpointId] = [newId(Date.now()), newId(Date.now())];
    const headers = JSON.stringify({ 'webhook-id': publicId('bat', batch) });
    const recordAttempt = (text: string) =>
      posthorn.database.query(
        `insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                        response_body, response_truncated, trigger, worker)
         values ($1, $2, 1, now(), 5, 200, 'delivered', 'http://127.0.0.1/', $3, $4, false, 'auto', 'test')`,
        [other, newId(Date.now()), headers, Buffer.from(text)],
      );
    await posthorn.database.query(
      `with made as (insert into posthorn.tenants (id) values ($4)),
            event as (insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, $4, 'a.b', null, 1)),
            skipped as (insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, finished_at, tenant, event_type)
                        values ($1, $2, 'skipped', 'expunged', 0, 0, now(), $4, 'a.b')),
            batch as (insert into posthorn.batches (id, endpoint_id, delivery_ids) values ($3, $2, array[$1, $5]::uuid[]))
       insert into posthorn.expunged (kind, id, applied_at, settle_until) values ('event', $1::text, now(), now() + interval '1 minute')`,
      [expunged, endpointId, batch, tenant, other],
    );
    await recordAttempt('late-thing-one');
    await expect.poll(() => tablesWith('late-thing-one'), { timeout: 10_000 }).toEqual([]);
    // Its members are not known any more, but a tombstone is there.
    await posthorn.database.query('delete from posthorn.batches where id = $1', [batch]);
    await recordAttempt('late-thing-two');
    await expect.poll(() => tablesWith('late-thing-two'), { timeout: 10_000 }).toEqual([]);
    // Upkeep looks for late results for a while only.
    await posthorn.database.query(
      'update posthorn.expunged set settle_until = now() where settle_until is not null',
    );
    await expect
      .poll(
        () => posthorn.database.query('select id from posthorn.expunged where settle_until is not null'),
        {
          timeout: 10_000,
        },
      )
      .toEqual([]);
  });
});

test.for(['first', 'last'] as const)('LIF-3: the hash of a debounced value is gone too: %s', async (mode) => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  const debounce = { key: 'data.email', window_ms: 60_000, mode };
  await createEndpoint(posthorn, { tenant, url: receiver.url, debounce });
  const secret = `debounced-thing-${mode}`;
  const hash = createHash('sha256').update(JSON.stringify(secret)).digest('base64url');
  const event = await publish(posthorn, { tenant, type: 'a.b', data: { email: secret } });
  if (mode === 'first') await untilDeliveries(posthorn, event.id, 'delivered');
  expect(await tablesWith(hash)).not.toEqual([]);
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  expect(await tablesWith(hash)).toEqual([]);
  expect(await tablesWith(secret)).toEqual([]);
});

test('LIF-3: a delivery that waits in memory is not sent after its payload was expunged', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { tenant, url: receiver.url, max_in_flight: 1 });
  receiver.hang();
  const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await receiver.waitFor(1);
  // It waits in the lane, with its payload, for the first one.
  const secret = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
  await expectStatus(api('DELETE', `/v1/events/${secret.id}/payload`), 204);
  const last = await publish(posthorn, { tenant, type: 'a.b', data: 3 });
  receiver.release();
  await untilDeliveries(posthorn, last.id, 'delivered');
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([first.id, last.id]);
  expect(await deliveriesOf(posthorn, secret.id)).toMatchObject([{ status: 'skipped', reason: 'expunged' }]);
  expect(
    await posthorn.database.query(
      'select kind, applied_at is not null as done from posthorn.expunged where id = $1',
      [parsePublicId('evt', secret.id)],
    ),
  ).toEqual([{ kind: 'event', done: true }]);
});

test('LIF-3: after the answer, no worker sends the payload from its memory, even if the notification is lost', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { tenant, url: receiver.url, max_in_flight: 1 });
  receiver.hang();
  const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await receiver.waitFor(1);
  const secret = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
  // Nobody listens from now on. The server connects again all the time, and loses the connection before it hears anything.
  const breaker = new pg.Client({ connectionString: posthorn.database.url });
  await breaker.connect();
  onTestFinished(() => breaker.end());
  let isOver = false;
  const breaking = (async () => {
    while (!isOver)
      await breaker.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'posthorn listen'",
      );
  })();
  await expectStatus(api('DELETE', `/v1/events/${secret.id}/payload`), 204);
  receiver.release();
  const last = await publish(posthorn, { tenant, type: 'a.b', data: 3 });
  await untilDeliveries(posthorn, last.id, 'delivered');
  isOver = true;
  await breaking;
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([first.id, last.id]);
});

test('LIF-3: deliveries of a large fan-out are expunged too, written or not', async () => {
  const tenant = newTenant();
  const event = await publish(posthorn, { tenant, type: 'a.b', data: SECRET });
  const id = parsePublicId('evt', event.id)!;
  const endpointId = newId(Date.now());
  const waiting = deliveryIdOf(id, 70_000);
  // Keeps the server from writing the slice.
  const writer = new pg.Client({ connectionString: posthorn.database.url });
  await writer.connect();
  onTestFinished(() => writer.end());
  await writer.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.fanOuts]);
  await posthorn.database.query(
    "insert into posthorn.queue (id, endpoint_id, due_at, tenant, event_type) values ($1, $2, now() + interval '1 day', $3, 'a.b')",
    [waiting, endpointId, tenant],
  );
  await posthorn.database.query(
    `insert into posthorn.fan_out_slices (event_id, first_ordinal, tenant, event_type, seq, endpoint_ids, has_fifo, was_disabled, deliver_at)
     values ($1, 70001, $2, 'a.b', 1, array[$3::uuid, $4::uuid], false, false, now() + interval '1 day')`,
    [id, tenant, newId(Date.now()), newId(Date.now())],
  );
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`), 204);
  const rows = await posthorn.database.query<{ id: string; status: string }>(
    "select id, status from posthorn.deliveries where tenant = $1 and reason = 'expunged' order by id",
    [tenant],
  );
  expect(rows).toHaveLength(3);
  expect(rows.map((row) => row.id)).toEqual([70_000, 70_001, 70_002].map((n) => deliveryIdOf(id, n)));
  expect(await posthorn.database.query('select from posthorn.queue where tenant = $1', [tenant])).toEqual([]);
  expect(
    await posthorn.database.query('select from posthorn.fan_out_slices where tenant = $1', [tenant]),
  ).toEqual([]);
});

test('LIF-3: a dead letter that is being replayed ends once', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  receiver.answer({ status: 400 });
  const { id: endpointId } = await createEndpoint(posthorn, { tenant, url: receiver.url });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: SECRET });
  await untilDeliveries(posthorn, event.id, 'dead');
  const id = deliveryIdOf(parsePublicId('evt', event.id)!, 0);
  const replayer = new pg.Client({ connectionString: posthorn.database.url });
  await replayer.connect();
  onTestFinished(() => replayer.end());
  await replayer.query('begin');
  await replayDeliveries(replayer, [{ id, endpoint_id: parsePublicId('ep', endpointId)! }]);
  const expunged = api('DELETE', `/v1/events/${event.id}/payload`);
  await eventually(
    'the expunge waits for the replay',
    async () =>
      (
        await posthorn.database.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%dead_letters%'",
        )
      ).length > 0,
  );
  await replayer.query('commit');
  await expectStatus(expunged, 204);
  expect(
    await posthorn.database.query(
      "select 'queue' as place from posthorn.queue where id = $1 union all select status from posthorn.deliveries where id = $1",
      [id],
    ),
  ).toEqual([{ place: 'discarded' }]);
});

test("LIF-3: nobody can expunge another tenant's payload", async () => {
  const event = await publish(posthorn, { tenant: newTenant(), type: 'a.b', data: 1 });
  const key = (await expectStatus(api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() }), 201))
    .body;
  await expectStatus(api('DELETE', `/v1/events/${event.id}/payload`, undefined, { key: key.key }), 404);
});

describe('LIF-3: expunging a tenant', () => {
  const deletion = (tenant: string, query: string) =>
    api('DELETE', `/v1/tenants/${tenant}?expunge=true${query}`);

  /** A tenant with something in as many tables as possible. */
  async function newWorld(tenant: string) {
    const [good, bad, slow] = [await newReceiver(), await newReceiver(), await newReceiver()];
    bad.answer({ status: 400, body: `refused for ${tenant}` });
    slow.answer({ status: 500 });
    const inbox = (await expectStatus(api('POST', '/v1/inboxes', { tenant }), 201)).body;
    const key = await expectStatus(api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201);
    const endpoints: string[] = [];
    for (const url of [good.url, bad.url, slow.url, inbox.url]) {
      const headers = { 'idempotency-key': `${tenant} ${endpoints.length}` };
      const settings = {
        tenant,
        url,
        retry: { schedule: [0, 3600] },
        headers: { authorization: HEADER_VALUE },
      };
      const options = { headers, key: key.body.key as string };
      endpoints.push((await createEndpoint(posthorn, settings, options)).id);
    }
    // Earlier versions stored answers without the tenant.
    await posthorn.database.query('update posthorn.idempotent_requests set tenant = null where key = $1', [
      `${tenant} 0`,
    ]);
    // Stored answers to requests of the admin key are about the tenant too.
    const ofAdmin = { headers: { 'idempotency-key': `${tenant} by the admin` } };
    const ofOthers = { tenant, url: good.url, events: ['never.sent'] };
    endpoints.push((await createEndpoint(posthorn, ofOthers, ofAdmin)).id);
    const event = await publish(posthorn, {
      tenant,
      type: 'user.created',
      data: { user: `user of ${tenant}` },
      idempotency_key: `key of ${tenant}`,
    });
    const events = ['posthorn.queue.age'];
    const notifier = { kind: 'slack', tenant, url: good.url, events, description: `chat of ${tenant}` };
    await expectStatus(api('POST', '/v1/notifiers', notifier), 201);
    await posthorn.database.query(
      `with notified as (
         insert into posthorn.notice_digests (endpoint_id, type, tenant, count, reports, items)
         select id, 'posthorn.queue.age', $1, 1, 1, '[]' from posthorn.endpoints
          where config ? 'notifier' and tenant = $1
       )
       insert into posthorn.confirmation_mails (tenant, address_hash, event_id) values ($1, '', gen_random_uuid())`,
      [tenant],
    );
    await posthorn.database.query("insert into posthorn.converted_payloads values ($1, 'v1', 'ab', $2)", [
      parsePublicId('evt', event.id),
      Buffer.from(`{"user":"user of ${tenant}"}`),
    ]);
    await insertRejectedRecord(posthorn.database, { tenant });
    await posthorn.database.query(
      `with state as (insert into posthorn.operational_state (kind, subject) values ('test', $1))
       insert into posthorn.stats_unreadable (at, counts, problem) values (now(), $2, 'test')`,
      [parsePublicId('ep', endpoints[0]!), JSON.stringify({ accepted: [[tenant]] })],
    );
    await untilEnded(event.id, ['dead', 'delivered', 'delivered', 'retrying']);
    await expectStatus(api('POST', `/v1/endpoints/${endpoints[0]}/replay`, { status: ['delivered'] }), 202);
    // Tasks of the admin that name what belongs to the tenant, but not the tenant.
    const failed = (await deliveriesOf(posthorn, event.id)).find(({ status }) => status === 'retrying')!;
    for (const filter of [{ endpoint_id: endpoints[0] }, { ids: [failed.id, FOREIGN] }])
      await expectStatus(api('POST', '/v1/dead-letters/replay', { filter }), 202);
    await posthorn.database.query(
      `insert into posthorn.tasks (id, kind, selection, why, total, created_by)
       values ($1, 'restore', $2, $3, 0, 'admin')`,
      [
        newId(Date.now()),
        JSON.stringify({ ...WHOLE_TENANT, eventId: parsePublicId('evt', event.id) }),
        event.id,
      ],
    );
    const rename = (settings: object) =>
      expectStatus(api('PUT', `/v1/tenants/${tenant}`, { name: `Name of ${tenant}`, ...settings }), 200);
    await rename({ validation: 'strict' });
    await expectStatus(api('POST', '/v1/events', { tenant, type: 'not.there', data: 1 }), 422);
    const failures = 'select from posthorn.schema_failures where tenant = $1';
    await eventually(
      'the failure is recorded',
      async () => (await posthorn.database.query(failures, [tenant])).length > 0,
    );
    await rename({});
    return { event, endpoints, key: key.body.key as string };
  }

  /** All ids that a tenant has, as texts and as UUIDs, and the tokens of its inboxes. */
  async function idsOf(tenant: string): Promise<Set<string>> {
    const of = async (prefix: IdPrefix | 'token', sql: string): Promise<string[]> => {
      const rows = await posthorn.database.query<{ id: string }>(sql, [tenant]);
      expect(rows.length, prefix).toBeGreaterThan(0);
      return rows.flatMap(({ id }) => (prefix === 'token' ? [id] : [id, publicId(prefix, id)]));
    };
    const ofDeliveries = ['queue', 'dead_letters', 'deliveries']
      .map((table) => `select id from posthorn.${table} where tenant = $1`)
      .join(' union ');
    return new Set([
      tenant,
      ...(await of('evt', 'select id from posthorn.events where tenant = $1')),
      ...(await of('ep', 'select id from posthorn.endpoints where tenant = $1')),
      ...(await of('key', 'select id from posthorn.api_keys where tenant = $1')),
      ...(await of('task', 'select id from posthorn.tasks where tenant = $1')),
      ...(await of('dlv', ofDeliveries)),
      ...(await of('att', `select id from posthorn.attempts where delivery_id in (${ofDeliveries})`)),
      ...(await of('token', 'select token as id from posthorn.inboxes where tenant = $1')),
    ]);
  }

  const untilDone = (task: { id: string }) =>
    eventually(
      'the task is done',
      async () => (await api('GET', `/v1/tasks/${task.id}`)).body.state === 'done',
      { timeoutMs: 20_000 },
    );

  /** All rows of a tenant, by table. */
  async function rowsOf(tenant: string): Promise<Record<string, string>> {
    const tables = await posthorn.database.query<{ table: string }>(
      `select table_name as table from information_schema.columns
        where table_schema = 'posthorn' and column_name = 'tenant' and table_name not like '%\\_2%' order by 1`,
    );
    const rows: Record<string, string> = {};
    for (const { table } of tables) {
      // Statistics may still be added up, and deliveries be sent.
      if (['event_stats', 'queue', 'tasks', 'deliveries'].includes(table)) continue;
      const [digest] = await posthorn.database.query<{ digest: string }>(
        `select coalesce(md5(string_agg(t::text, ',' order by t::text)), '') as digest from posthorn.${table} t where tenant = $1`,
        [tenant],
      );
      rows[table] = digest!.digest;
    }
    return rows;
  }

  test('every table with data of tenants is in the list of this test', async () => {
    const tables = await posthorn.database.query<{ name: string }>(
      `select distinct c.table_name as name from information_schema.columns c
         join pg_class k on k.relname = c.table_name and k.relnamespace = 'posthorn'::regnamespace and not k.relispartition
        where c.table_schema = 'posthorn'
          and c.column_name in ('tenant', 'endpoint_id', 'endpoint_ids', 'event_id', 'delivery_id') order by 1`,
    );
    // If this fails: delete the rows of a tenant in src/postgres/queries/expunge-tenant.ts, then add the table.
    expect(tables.map(({ name }) => name)).toEqual([
      'api_keys',
      'attempts',
      'audit_log',
      'batches',
      'confirmation_mails',
      'console_sessions',
      'converted_payloads',
      'dead_letters',
      'debounce_keys',
      'debounce_windows',
      'debounced',
      'deliveries',
      'endpoint_health',
      'endpoint_secrets',
      'endpoint_skips',
      'endpoint_stats',
      'endpoints',
      'event_stats',
      'events',
      'expunged',
      'fan_out_slices',
      'idempotency_keys',
      'idempotent_requests',
      'inboxes',
      'kafka_records',
      'notice_digests',
      'open_batches',
      'operational_notes',
      'outbox',
      'outbox_rejected',
      'queue',
      'schema_failures',
      'tasks',
    ]);
  });

  test('deletes every row of it in every table, and leaves all others alone', async () => {
    const [tenant, other] = ['gone-for-good', 'stays-for-ever'];
    const [world] = [await newWorld(tenant), await newWorld(other)];
    const before = await rowsOf(other);
    const traces = await idsOf(tenant);
    expect(traces).toContain(world.event.id);
    for (const id of world.endpoints) expect(traces).toContain(id);

    expect((await expectStatus(deletion(tenant, '&dry_run=true'), 200)).body).toMatchObject({
      count: 1,
      more: false,
    });
    await expectStatus(deletion(tenant, ''), 422);
    await expectStatus(deletion(tenant, '&confirm=another'), 422);
    const task = (await expectStatus(deletion(tenant, `&confirm=${tenant}`), 202)).body;
    expect(task).toMatchObject({ kind: 'expunge', total: 1 });
    // While it runs.
    const refused = await expectStatus(api('POST', '/v1/events', { tenant, type: 'a.b', data: 1 }), 409);
    expect(refused.body.code).toBe('conflict');
    const batch = await api('POST', '/v1/events/batch', { events: [{ tenant, type: 'a.b', data: 1 }] });
    expect(batch.text).toContain('being deleted');
    await expectStatus(deletion(tenant, `&confirm=${tenant}`), 409);
    await expectStatus(api('POST', '/v1/endpoints', { tenant, url: 'https://example.com/' }), 409);
    await expectStatus(api('POST', `/v1/tasks/${task.id}/cancel`), 409);
    await expectStatus(api('GET', '/v1/events', undefined, { key: world.key }), 401);
    await expect(
      posthorn.database.query("select posthorn.publish('a.b', '1', $1)", [tenant]),
    ).rejects.toThrow('is being deleted');
    await untilDone(task);

    const found = new Set<string>();
    for (const trace of traces) for (const table of await tablesWith(trace)) found.add(table);
    // The tombstone, and one audit entry.
    expect([...found].sort()).toEqual(['audit_log', 'expunged']);
    expect(
      await posthorn.database.query(
        'select action, tenant, changes from posthorn.audit_log where object_id = $1',
        [tenant],
      ),
    ).toEqual([{ action: 'tenant.expunge', tenant: null, changes: [] }]);
    // No other entry names what belonged to it.
    const entries = await posthorn.database.query<{ text: string }>(
      "select a::text as text from posthorn.audit_log a where action <> 'tenant.expunge'",
    );
    for (const { text } of entries) for (const trace of traces) expect(text).not.toContain(trace);
    // A task about others too stays, without the ids of the tenant.
    expect(
      await posthorn.database.query(
        "select from posthorn.tasks where selection -> 'ids' = jsonb_build_array($1::text)",
        [parsePublicId('dlv', FOREIGN)],
      ),
    ).toHaveLength(1);
    expect(await rowsOf(other)).toEqual(before);
    // The log has ids, no payloads, headers, answers or keys.
    for (const secret of [`user of ${tenant}`, `refused for ${tenant}`, HEADER_VALUE, world.key])
      expect(posthorn.output()).not.toContain(secret);
    expect(await tablesWith(HEADER_VALUE)).toEqual([]);
    // The tenant can be used again.
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  });

  test('a running expunge refuses the plain deletion of the tenant', async () => {
    const tenant = newTenant();
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const task = (await expectStatus(deletion(tenant, `&confirm=${tenant}`), 202)).body;
    await expectStatus(api('DELETE', `/v1/tenants/${tenant}`), 409);
    await expectStatus(api('POST', '/v1/events', { tenant, type: 'a.b', data: 1 }), 409);
    await untilDone(task);
  });

  test('an expunge stops when the tenant is no longer marked', async () => {
    const tenant = newTenant();
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const id = newId(Date.now());
    await posthorn.database.query(
      `insert into posthorn.tasks (id, kind, selection, total, created_by)
       values ($1, 'expunge', $2, 1, 'admin')`,
      [id, JSON.stringify({ ...WHOLE_TENANT, tenant })],
    );
    await posthorn.database.query("select pg_notify('posthorn_tasks', '')");
    await eventually(
      'the task has failed',
      async () => (await api('GET', `/v1/tasks/${publicId(idPrefixes.task, id)}`)).body.state === 'failed',
      { timeoutMs: 20_000 },
    );
    expect((await api('GET', `/v1/events/${event.id}`)).body.data).toBe(1);
  });

  test('the name of a tenant counts only in the field for the tenant, not elsewhere in a text', async () => {
    const tenant = newTenant();
    const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
    const client = await pool.connect();
    onTestFinished(async () => {
      client.release(true);
      await pool.end();
    });
    await client.query('begin');
    await client.query('delete from posthorn.stats_journal');
    const count = (counts: unknown) =>
      client.query('insert into posthorn.stats_journal (counts) values ($1)', [JSON.stringify(counts)]);
    await count({ accepted: [['other', tenant, 1]], attempts: [['ep', 'other', tenant, []]] });
    expect(await hasUncountedStatistics(client, tenant)).toBe(false);
    await count({ dead: [['ep', tenant, 'a.b', 1]] });
    expect(await hasUncountedStatistics(client, tenant)).toBe(true);

    const bodies = [
      `{"tenant":"other","data":{"tenant":"${tenant}"}}`,
      `no JSON "tenant":"${tenant}"`,
      'null \\u',
      `{"tenant"  :  "${tenant}"}`,
      `{"tenant":"\\u00${tenant.charCodeAt(0).toString(16)}${tenant.slice(1)}"}`,
    ];
    for (const body of bodies)
      await client.query(
        "insert into posthorn.relay_rejected (source, id, body, problem) values ('names', $1, $2, 'test')",
        [newId(Date.now()), Buffer.from(body)],
      );
    await deleteTenantRows(client, { id: newId(Date.now()), tenant }, 100);
    const { rows } = await client.query<{ body: Buffer }>(
      "select body from posthorn.relay_rejected where source = 'names'",
    );
    expect(rows.map(({ body }) => body.toString()).sort()).toEqual(bodies.slice(0, 3).sort());

    const operatorTenant = newTenant();
    const payloads = [
      { tenant: 'other', endpoint: { metadata: { tenant } } },
      { tenant },
      { oldest: { tenant } },
      { groups: [{ items: [{ tenant: 'other' }, { tenant }] }] },
      { endpoints: [{ tenant: 'other' }, { tenant }] },
    ];
    const ids = payloads.map(() => newEventId(Date.now()));
    for (const [n, payload] of payloads.entries())
      await client.query(
        "insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, $2, 'posthorn.test', $3, 0)",
        [ids[n], operatorTenant, Buffer.from(JSON.stringify(payload))],
      );
    await expungeOperationalEvents(client, { tenant, operatorTenant }, firstIdAt(0), 100);
    const kept = await client.query('select id from posthorn.events where tenant = $1 and data is not null', [
      operatorTenant,
    ]);
    expect(kept.rows).toEqual([{ id: ids[0] }]);
  });

  /** A closed tenant whose expunge failed this many hours ago. */
  async function newFailedExpunge(hours: number): Promise<string> {
    const tenant = newTenant();
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await posthorn.database.query(
      `with closed as (update posthorn.tenants set expunging_at = now() where id = $2),
            tombstone as (insert into posthorn.expunged (kind, id) values ('tenant', $2))
       insert into posthorn.tasks (id, kind, state, selection, total, created_by, finished_at, error)
       values ($1, 'expunge', 'failed', $3, 1, 'admin', now() - make_interval(hours => $4), 'timeout')`,
      [newId(Date.now()), tenant, JSON.stringify({ ...WHOLE_TENANT, tenant }), hours],
    );
    return tenant;
  }
  const onlyTombstones = ['audit_log', 'expunged'];

  test('an expunge that failed continues when it is requested again', async () => {
    const tenant = await newFailedExpunge(0);
    await untilDone((await expectStatus(deletion(tenant, `&confirm=${tenant}`), 202)).body);
    expect(await tablesWith(tenant)).toEqual(onlyTombstones);
  });

  test('upkeep continues an expunge that failed', async () => {
    const recent = await newFailedExpunge(0);
    const tenant = await newFailedExpunge(2);
    await expect.poll(() => tablesWith(tenant), { timeout: 20_000 }).toEqual(['expunged']);
    // One that failed a moment ago waits.
    const tasks = "select state from posthorn.tasks where kind = 'expunge' and selection ->> 'tenant' = $1";
    expect(await posthorn.database.query(tasks, [recent])).toEqual([{ state: 'failed' }]);
    await untilDone((await expectStatus(deletion(recent, `&confirm=${recent}`), 202)).body);
  });

  test('a tombstone that was not applied, as after a restore, is applied by upkeep', async () => {
    const tenant = newTenant();
    const kept = await publish(posthorn, { tenant: newTenant(), type: 'a.b', data: 1 });
    const restored = await publish(posthorn, { tenant: newTenant(), type: 'a.b', data: SECRET });
    await publish(posthorn, { tenant, type: 'a.b', data: SECRET });
    await posthorn.database.query(
      "insert into posthorn.expunged (kind, id, at) values ('event', $1, now()), ('tenant', $2, now()), ('tenant', 'nobody', now())",
      [parsePublicId('evt', restored.id), tenant],
    );
    await eventually(
      'all are applied',
      async () =>
        (await posthorn.database.query('select from posthorn.expunged where applied_at is null')).length ===
        0,
      { timeoutMs: 20_000 },
    );
    expect((await api('GET', `/v1/events/${restored.id}`)).body).toMatchObject({
      data: null,
      expunged_by: 'tombstone',
    });
    expect(await posthorn.database.query('select from posthorn.events where tenant = $1', [tenant])).toEqual(
      [],
    );
    expect((await api('GET', `/v1/events/${kept.id}`)).body.data).toBe(1);
  });
});

async function untilEnded(eventId: string, statuses: readonly string[]): Promise<void> {
  await expect
    .poll(async () => (await deliveriesOf(posthorn, eventId)).map(({ status }) => status).sort(), {
      timeout: 10_000,
    })
    .toEqual(statuses);
}
