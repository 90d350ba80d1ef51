import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/domain/clock.ts';
import {
  deliveryIdOf,
  eventIdFromForeignId,
  newEventId,
  newId,
  parsePublicId,
  publicId,
  type Uuid,
} from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/retention.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { deleteDebounced } from '../../src/postgres/queries/debounce.ts';
import { createPostgresRetentionStore } from '../../src/postgres/retention-store.ts';
import { expireRows } from '../../src/upkeep/expire-rows.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import {
  createDay,
  dropPartitions,
  FOR_EVER,
  keepDays,
  type OldEventOptions,
  startOfDay,
  storeOldEvent,
} from '../support/retention.ts';

const evt = (id: Uuid): string => publicId('evt', id);
const dlv = (id: Uuid): string => publicId('dlv', id);

const namesOf = async (database: TestDatabase, condition = 'true'): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      `select name from posthorn.partitions where ${condition} order by name`,
    )
  ).map(({ name }) => name);
const countOf = async (database: TestDatabase, table: string): Promise<number> =>
  (await database.query<{ n: number }>(`select count(*)::int as n from posthorn.${table}`))[0]!.n;

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

describe('LIF-1: partitions are dropped when their retention ends', () => {
  const endpointId = newId(Date.now());
  let database: TestDatabase;
  const store = (daysAgo: number, status: OldEventOptions['status'], more: Partial<OldEventOptions> = {}) =>
    storeOldEvent(database, { status, endpointId, atMs: startOfDay(daysAgo) + 3_600_000, ...more });

  const storeWithId = (id: Uuid, ordinal: number) =>
    database.query(
      `with event as (
         insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, 'acme', 'a.b', '1', 1)
       )
       insert into posthorn.queue (id, endpoint_id, tenant, event_type) values ($2, $3, 'acme', 'a.b')`,
      [id, deliveryIdOf(id, ordinal), endpointId],
    );

  beforeEach(async () => {
    database = await newDatabase();
  });

  test('with everything that is no longer needed, oldest first, and one small partition remains', async () => {
    for (const daysAgo of [50, 49, 48, 20]) {
      await createDay(database, startOfDay(daysAgo));
      for (const status of ['waiting', 'dead', 'delivered', 'skipped'] as const) await store(daysAgo, status);
    }
    const dropped = await dropPartitions(database, { days: keepDays(30) });
    expect(dropped.filter((name) => !name.includes('kept'))).toHaveLength(9);
    // The waiting and dead ones of the three old days, and all of the recent day.
    expect(await countOf(database, 'events')).toBe(3 * 2 + 4);
    expect(await countOf(database, 'attempts')).toBe(3 * 2 + 4);
    expect(await countOf(database, 'deliveries')).toBe(2);
    expect(await countOf(database, 'queue')).toBe(4);
    expect(await namesOf(database, "kept and state = 'attached'")).toHaveLength(3);
    expect(await namesOf(database, "state <> 'attached'")).toEqual([]);
    expect(await namesOf(database)).toEqual(
      (
        await database.query<{ name: string }>(
          "select relname as name from pg_class where relnamespace = 'posthorn'::regnamespace and relispartition and relkind = 'r' order by 1",
        )
      ).map(({ name }) => name),
    );
    expect(await countOf(database, 'partition_changes')).toBe(0);
    // ANALYZE takes no samples of payloads and answers, also not in partitions that replace others.
    const sampled = await database.query(
      `select relname, attname from pg_attribute join pg_class c on c.oid = attrelid and relkind in ('r', 'p')
        where relnamespace = 'posthorn'::regnamespace and relname ~ '^(events|attempts)($|_[0-9k])'
          and attname in ('data', 'request_headers', 'response_headers', 'response_body', 'error_message')
          and attstattarget is distinct from 0`,
    );
    expect(sampled).toEqual([]);
    // The range still has a partition, so a delivery that waited all the time can end.
    expect(await dropPartitions(database, { days: keepDays(30) })).toEqual([]);
  });

  test.each(['events', 'attempts'])('large %s are copied in smaller chunks', async (table) => {
    await createDay(database, startOfDay(50));
    for (let n = 0; n < 3; n += 1) await store(50, 'waiting');
    await database.query("update posthorn.attempts set response_body = 'a response'");
    await dropPartitions(database, { days: { ...FOR_EVER, deliveries: 30 } });
    const [day] = await namesOf(database, `parent = '${table}' and to_at < now() - interval '40 days'`);
    const [replacement] = await database.query<{ name: string }>(
      'select posthorn.prepare_partition_swap($1, now()) as name',
      [day],
    );
    const copied: number[] = [];
    let after: Uuid | null = null;
    do {
      const rows: { after: Uuid | null }[] = await database.query(
        'select posthorn.copy_partition_rows($1, $2, 100, 1) as after',
        [replacement!.name, after],
      );
      after = rows[0]!.after;
      copied.push(await countOf(database, replacement!.name));
    } while (after !== null);
    expect(copied).toEqual([1, 2, 3]);
  });

  test('an event stays while its last possible delivery needs it, whatever the version of its id', async () => {
    await createDay(database, startOfDay(50));
    await createDay(database, startOfDay(49));
    const needed = [
      await store(50, 'waiting', { ordinal: 65_535 }),
      await store(50, 'dead', { ordinal: 65_536 }),
      await store(50, 'waiting', { ordinal: 0xfffff }),
      await store(49, 'delivered', { ordinal: 70_000, finishedAtMs: Date.now() - DAY_MS }),
    ];
    // An id as the outbox and relays make it.
    const older = eventIdFromForeignId(newId(startOfDay(50) + 5000), 0);
    await storeWithId(older, 0xffff);
    // Both rounds: the second replaces the replacement of the first.
    await dropPartitions(database, { days: keepDays(50), nowMs: startOfDay(-1) });
    await dropPartitions(database, { days: keepDays(30) });
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    await dropPartitions(database, { days: keepDays(30) });
    const found = await database.query<{ id: Uuid }>('select id from posthorn.events order by id');
    expect(found.map(({ id }) => id).sort()).toEqual([...needed.map(({ id }) => id), older].sort());
    expect(await countOf(database, 'attempts')).toBe(4);
  });

  test('an event stays while deliveries of its large fan-out are not written yet', async () => {
    await createDay(database, startOfDay(50));
    const id = newEventId(startOfDay(50) + 1000);
    await database.query(
      "insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, 'acme', 'a.b', '1', 100000)",
      [id],
    );
    await database.query(
      `insert into posthorn.fan_out_slices (event_id, first_ordinal, tenant, event_type, seq, endpoint_ids, has_fifo, was_disabled)
       values ($1, 0, 'acme', 'a.b', 1, array[$2::uuid], false, false)`,
      [id, endpointId],
    );
    await dropPartitions(database, { days: keepDays(30) });
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    await dropPartitions(database, { days: keepDays(30) });
    expect(await database.query('select id from posthorn.events')).toEqual([{ id }]);
    await database.query('delete from posthorn.fan_out_slices');
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    await dropPartitions(database, { days: keepDays(30) });
    expect(await countOf(database, 'events')).toBe(0);
  });

  test('0 keeps everything forever', async () => {
    await createDay(database, startOfDay(900));
    await store(900, 'delivered');
    expect(await dropPartitions(database, { days: FOR_EVER })).toEqual([]);
    expect(await countOf(database, 'events')).toBe(1);
  });

  test('events stay while their deliveries do', async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'delivered');
    await dropPartitions(database, { days: { ...keepDays(30), deliveries: 0 } });
    expect(await countOf(database, 'events')).toBe(1);
    expect(await countOf(database, 'attempts')).toBe(0);
  });

  test('a delivery that ended recently stays, with its event, until its own retention has ended', async () => {
    await createDay(database, startOfDay(50));
    const late = await store(50, 'delivered', { finishedAtMs: Date.now() - DAY_MS });
    await store(50, 'delivered');
    await dropPartitions(database, { days: keepDays(30) });
    expect(await database.query('select id from posthorn.deliveries')).toEqual([{ id: late.deliveryId }]);
    expect(await database.query('select id from posthorn.events')).toEqual([{ id: late.id }]);
    expect(await countOf(database, 'attempts')).toBe(1);
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    await dropPartitions(database, { days: keepDays(30), nowMs: Date.now() + 40 * DAY_MS });
    expect(await countOf(database, 'deliveries')).toBe(0);
    expect(await countOf(database, 'attempts')).toBe(0);
    expect(await countOf(database, 'events')).toBe(0);
  });

  test('a partition stays while a task may replay deliveries out of it', async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'skipped');
    await database.query(
      `insert into posthorn.tasks (id, kind, selection, total, created_by)
       values ($1, 'replay', '{"statuses": ["skipped"], "since": null, "until": null}', 1, 'admin')`,
      [newId(Date.now())],
    );
    await dropPartitions(database, { days: keepDays(30) });
    expect(await countOf(database, 'deliveries')).toBe(1);
    expect(await countOf(database, 'events')).toBe(1);
    await database.query("update posthorn.tasks set state = 'done', finished_at = now()");
    await dropPartitions(database, { days: keepDays(30) });
    expect(await countOf(database, 'deliveries')).toBe(0);
    expect(await countOf(database, 'events')).toBe(0);
  });

  test('a partition stays if the hook before its drop refuses or fails', async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'delivered');
    const offered: string[] = [];
    await dropPartitions(database, {
      days: keepDays(30),
      beforeDrop: async ({ name }) => {
        offered.push(name);
        return false;
      },
    });
    expect(offered.map((name) => name.split('_')[0])).toEqual(['deliveries', 'attempts']);
    const failing = dropPartitions(database, {
      days: keepDays(30),
      beforeDrop: () => Promise.reject(new Error('the archive is full')),
    });
    await expect(failing).rejects.toThrow('the archive is full');
    expect(await countOf(database, 'deliveries')).toBe(1);
  });

  test('changes that are made while rows are copied are not lost', async () => {
    await createDay(database, startOfDay(50));
    const waiting = await store(50, 'waiting');
    const discarded = await store(50, 'dead');
    await dropPartitions(database, {
      days: keepDays(30),
      onStep: () => {},
      store: await withChangeBeforeSwap(database, async () => {
        await database.query('update posthorn.attempts set status_code = 418 where delivery_id = $1', [
          waiting.deliveryId,
        ]);
        await database.query("update posthorn.events set type = 'changed' where id = $1", [waiting.id]);
        await database.query('delete from posthorn.dead_letters where id = $1', [discarded.deliveryId]);
        await database.query('delete from posthorn.events where id = $1', [discarded.id]);
      }),
    });
    expect(await database.query('select id, type from posthorn.events')).toEqual([
      { id: waiting.id, type: 'changed' },
    ]);
    expect(
      await database.query('select status_code from posthorn.attempts where delivery_id = $1', [
        waiting.deliveryId,
      ]),
    ).toEqual([{ status_code: 418 }]);
  });

  test('a transaction that keeps the table locked delays the drop, and a later round completes it', async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'dead');
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    await reader.query('begin; lock table posthorn.attempts in access share mode');
    const quick = { ...systemClock, after: (_ms: number, task: () => void) => systemClock.after(1, task) };
    await dropPartitions(database, { days: keepDays(30), clock: quick });
    expect(await namesOf(database, "state = 'preparing'")).toHaveLength(1);
    await reader.end();
    await dropPartitions(database, { days: keepDays(30) });
    expect(await namesOf(database, "state <> 'attached'")).toEqual([]);
    expect(await countOf(database, 'events')).toBe(1);
  });

  test('a vacuum of a partition delays its drop, not that of the others, and a later round completes it', async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'delivered');
    const [partition] = await namesOf(
      database,
      "parent = 'deliveries' and to_at < now() - interval '30 days'",
    );
    const vacuum = new pg.Client({ connectionString: database.url });
    await vacuum.connect();
    await vacuum.query(`begin; lock table posthorn.${partition} in share update exclusive mode`);
    const quick = { ...systemClock, after: (_ms: number, task: () => void) => systemClock.after(1, task) };
    await dropPartitions(database, { days: keepDays(30), clock: quick });
    expect(await countOf(database, 'deliveries')).toBe(1);
    expect(await countOf(database, 'attempts')).toBe(0);
    await vacuum.end();
    await dropPartitions(database, { days: keepDays(30) });
    expect(await countOf(database, 'deliveries')).toBe(0);
  });
});

/** The store of retention, which calls `change` right before the first swap of each table. */
async function withChangeBeforeSwap(database: TestDatabase, change: () => Promise<void>) {
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => opened.close());
  const store = createPostgresRetentionStore(opened);
  let isChanged = false;
  return {
    ...store,
    swap: async (replacement: Parameters<typeof store.swap>[0]) => {
      if (replacement.table === 'events' && !isChanged) {
        isChanged = true;
        await change();
      }
      return store.swap(replacement);
    },
  };
}

describe('LIF-1: rows whose retention ends earlier', () => {
  const endpointId = newId(Date.now());
  let database: TestDatabase;
  let opened: ReturnType<typeof openDatabase>;
  const expired: number[] = [];
  const expire = (days: Partial<typeof FOR_EVER>) =>
    expireRows(
      {
        store: createPostgresRetentionStore(opened),
        clock: systemClock,
        days: { ...FOR_EVER, ...days },
        tenantPositions: new Map(),
        onDeadLettersExpired: (count) => void expired.push(count),
        onProblem: (_what, error) => {
          throw error;
        },
      },
      () => false,
    );
  const store = (daysAgo: number, status: OldEventOptions['status'], more: Partial<OldEventOptions> = {}) =>
    storeOldEvent(database, { status, endpointId, atMs: startOfDay(daysAgo) + 3_600_000, ...more });

  beforeEach(async () => {
    database = await newDatabase();
    opened = openDatabase({
      connectionString: database.url,
      apiConnections: 2,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    onTestFinished(() => opened.close());
    expired.length = 0;
  });

  test('payloads that nothing needs are deleted, the events stay', async () => {
    await createDay(database, startOfDay(20));
    const [waiting, dead, delivered] = [
      await store(20, 'waiting'),
      await store(20, 'dead'),
      await store(20, 'delivered'),
    ];
    await expire({ payloads: 10, events: 30 });
    const rows = await database.query<{ id: Uuid; has: boolean }>(
      'select id, data is not null as has from posthorn.events order by id',
    );
    expect(new Map(rows.map(({ id, has }) => [id, has]))).toEqual(
      new Map([
        [waiting.id, true],
        [dead.id, true],
        [delivered.id, false],
      ]),
    );
  });

  test('a dead letter that is also in the history does not stop the others from expiring', async () => {
    await createDay(database, startOfDay(20));
    const { deliveryId } = await store(20, 'dead');
    await store(20, 'dead');
    await database.query(
      `insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, finished_at, tenant, event_type)
       values ($1, $2, 'delivered', 1, 0, now(), 'acme', 'order.paid')`,
      [deliveryId, endpointId],
    );
    await expire({ deadLetters: 10 });
    expect(expired).toEqual([2]);
    expect(await countOf(database, 'dead_letters')).toBe(0);
    expect(await countOf(database, 'deliveries')).toBe(2);
  });

  test('events of large fan-outs are deleted in smaller chunks', async () => {
    await createDay(database, startOfDay(20));
    for (let n = 0; n < 3; n += 1) await store(20, 'delivered');
    await database.query('update posthorn.events set deliveries = 6000');
    const expirer = createPostgresRetentionStore(opened);
    const left: number[] = [];
    let after: Uuid | null = null;
    do {
      after = await expirer.deleteTenantEvents('acme', Date.now() - DAY_MS, after, 100);
      left.push(await countOf(database, 'events'));
    } while (after !== null);
    expect(left).toEqual([2, 1, 0]);
  });

  test("a tenant's shorter retention deletes its events, and nobody else's", async () => {
    await createDay(database, startOfDay(20));
    for (const tenant of ['short', 'other'])
      for (const status of ['waiting', 'dead', 'delivered'] as const) await store(20, status, { tenant });
    await database.query(
      "insert into posthorn.tenants (id, retention_days) values ('short', 7), ('other', null)",
    );
    await expire({ events: 90 });
    const count = (table: string, tenant: string) =>
      database.query(`select count(*)::int as n from posthorn.${table} where tenant = $1`, [tenant]);
    expect(await count('events', 'short')).toEqual([{ n: 2 }]);
    expect(await count('deliveries', 'short')).toEqual([{ n: 0 }]);
    expect(await count('events', 'other')).toEqual([{ n: 3 }]);
    expect(await count('deliveries', 'other')).toEqual([{ n: 1 }]);
    expect(await countOf(database, 'attempts')).toBe(2 + 3);
  });

  test('dead letters expire if a setting says so: they are discarded, and a note reports it', async () => {
    await createDay(database, startOfDay(20));
    await store(20, 'dead');
    const young = await store(20, 'dead', { finishedAtMs: Date.now() - DAY_MS });
    await expire({});
    expect(await countOf(database, 'dead_letters')).toBe(2);
    await expire({ deadLetters: 10 });
    await expire({ deadLetters: 10 });
    expect(expired).toEqual([1]);
    expect(await database.query('select count::int as n from posthorn.expired_dead_letters')).toEqual([
      { n: 1 },
    ]);
    expect(await database.query('select id from posthorn.dead_letters')).toEqual([{ id: young.deliveryId }]);
    expect(await database.query('select status, reason, discard from posthorn.deliveries')).toMatchObject([
      { status: 'discarded', reason: 'retention', discard: { why: 'Its retention has ended.' } },
    ]);
    expect(await database.query('select kind, detail from posthorn.operational_notes')).toEqual([
      { kind: 'posthorn.dead_letters.expired', detail: { count: 1 } },
    ]);
  });
});

describe('LIF-1: with a running Posthorn', () => {
  let database: TestDatabase;
  let posthorn: TestPosthorn;
  beforeAll(async () => {
    database = await createTestDatabase();
    posthorn = await startTestPosthorn({ database });
  });
  afterAll(async () => {
    await posthorn?.stop();
    await database?.drop();
  });

  test('an old dead letter is shown and replayed as before, also after its partition is gone', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { tenant, url: receiver.url });
    const endpointId = parsePublicId('ep', endpoint.id)!;
    await createDay(database, startOfDay(50));
    const atMs = startOfDay(50) + 1000;
    const old = await storeOldEvent(database, { status: 'dead', endpointId, tenant, atMs });
    await storeOldEvent(database, { status: 'delivered', endpointId, tenant, atMs });
    const strict = await startTestPosthorn({
      database,
      env: { POSTHORN_UPKEEP_MS: '200ms', POSTHORN_RETENTION_EVENTS: '30' },
    });
    await eventually(
      'the partitions are dropped',
      async () => (await namesOf(database, "not kept and to_at < now() - interval '30 days'")).length === 0,
    );
    await strict.stop();
    expect(
      (await expectStatus(posthorn.api('GET', `/v1/events?tenant=${tenant}`), 200)).body.data,
    ).toHaveLength(1);
    const { body } = await expectStatus(posthorn.api('GET', `/v1/events/${evt(old.id)}`), 200);
    expect(body.data).toEqual({ n: 1 });
    expect((await deliveriesOf(posthorn, evt(old.id)))[0]).toMatchObject({ status: 'dead' });
    expect(await attemptsOf(posthorn, dlv(old.deliveryId))).toHaveLength(1);
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${dlv(old.deliveryId)}/replay`), 202);
    await untilDeliveries(posthorn, evt(old.id), 'delivered');
    expect(receiver.requests).toHaveLength(1);
    expect(await attemptsOf(posthorn, dlv(old.deliveryId))).toHaveLength(2);
  });

  test('GET /v1/storage says how much is stored and for how long, to admins only', async () => {
    await createDay(database, startOfDay(40));
    const endpointId = newId(Date.now());
    await storeOldEvent(database, { status: 'delivered', endpointId, atMs: startOfDay(40) });
    await database.query('analyze posthorn.events');
    await database.query(
      `insert into posthorn.expired_dead_letters
       select (now() at time zone 'UTC')::date - days, count from (values (0, 5), (29, 2), (30, 100)) as t(days, count)`,
    );
    const { body } = await expectStatus(posthorn.api('GET', '/v1/storage'), 200);
    expect(body.dead_letters_expired).toBe(7);
    expect(body.kinds.events).toMatchObject({ retention_days: 90 });
    expect(body.kinds.events.bytes).toBeGreaterThan(8192);
    expect(body.kinds.events.days_kept).toBeGreaterThan(39.9);
    expect(body.kinds.dead_letters.retention_days).toBeNull();
    expect(body.kinds.audit.retention_days).toBe(365);
    expect(body.disk.free_bytes).toBeGreaterThan(0);
    expect(body.overdue_seconds).toBe(0);
    const key = await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: 'a' }), 201);
    await expectStatus(posthorn.api('GET', '/v1/storage', undefined, { key: key.body.key }), 403);
  });

  test('GET /v1/storage knows the rows of tables that were never analyzed', async () => {
    const event = { type: 'a.b', tenant: newTenant(), data: 1 };
    const { id } = (await expectStatus(posthorn.api('POST', '/v1/events', event), 202)).body;
    const analyzed = await database.query(
      "select relname from pg_stat_user_tables where relname ~ '^audit_log' and last_analyze is not null",
    );
    expect(analyzed).toEqual([]);
    await expectStatus(posthorn.api('DELETE', `/v1/events/${id}/payload`), 204);
    await eventually('the audit log has rows', async () => {
      const { body } = await expectStatus(posthorn.api('GET', '/v1/storage'), 200);
      return body.kinds.audit.rows > 0 && body.kinds.events.rows > 0;
    });
  });

  test('GET /v1/storage counts every table of Posthorn, also those that a tenant fills beside its events', async () => {
    const id = newEventId(startOfDay(3));
    await database.query(
      "insert into posthorn.converted_payloads (event_id, version, converter, data) values ($1, 'v1', 'x', repeat('x', 100000)::bytea)",
      [id],
    );
    await database.query(
      'insert into posthorn.batches (id, endpoint_id, delivery_ids) values ($1, $1, array[$1::uuid])',
      [id],
    );
    await database.query(
      'insert into posthorn.debounced (delivery_id, endpoint_id, by_id) values ($1, $1, $1)',
      [id],
    );
    const { body } = await expectStatus(posthorn.api('GET', '/v1/storage'), 200);
    for (const kind of ['converted_payloads', 'batches', 'debounce']) {
      const { bytes, days_kept, retention_days } = body.kinds[kind];
      expect(bytes, kind).toBeGreaterThan(8192);
      expect(Math.abs(days_kept - 3), kind).toBeLessThan(1.1);
      expect(retention_days, kind).toBe(90);
    }
    expect(body.kinds.other.bytes).toBeGreaterThan(0);
    await database.query('delete from posthorn.converted_payloads');
    await database.query('delete from posthorn.batches');
    await database.query('delete from posthorn.debounced');
  });

  test('LIF-1: rows about debounced deliveries are deleted with their partition', async () => {
    const own = await newDatabase();
    await createDay(own, startOfDay(10));
    const [gone, kept] = [newEventId(startOfDay(10) - 1000), newEventId(startOfDay(10) + 1000)];
    for (const id of [gone, kept])
      await own.query(
        'insert into posthorn.debounced (delivery_id, endpoint_id, by_id) values ($1, $1, $1)',
        [id],
      );
    const opened = openDatabase({
      connectionString: own.url,
      apiConnections: 1,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    try {
      expect(await deleteDebounced(opened.pool('upkeep'), 100)).toBe(1);
    } finally {
      await opened.close();
    }
    expect(await own.query('select delivery_id as id from posthorn.debounced')).toEqual([{ id: kept }]);
  });

  test("a tenant's retention_days may be shorter than everyone's, not longer", async () => {
    const put = (retention_days: number | null) =>
      posthorn.api('PUT', '/v1/tenants/short-lived', { retention_days });
    expect((await expectStatus(put(7), 201)).body.retention_days).toBe(7);
    expect((await expectStatus(put(null), 200)).body.retention_days).toBeNull();
    const refused = await expectStatus(put(91), 422);
    expect(refused.body.errors).toMatchObject([{ path: 'retention_days' }]);
  });

  test('a delivery whose payload has expired cannot be replayed: 409', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { tenant, url: receiver.url });
    const endpointId = parsePublicId('ep', endpoint.id)!;
    const old = await storeOldEvent(database, { status: 'delivered', endpointId, tenant, atMs: Date.now() });
    await database.query('update posthorn.events set data = null where id = $1', [old.id]);
    const refused = await expectStatus(
      posthorn.api('POST', `/v1/deliveries/${dlv(old.deliveryId)}/replay`),
      409,
    );
    expect(refused.body.detail).toContain('payload');
    await expectStatus(posthorn.api('POST', `/v1/events/${evt(old.id)}/replay`, {}), 409);
    expect(receiver.requests).toEqual([]);
  });
});
