/**
 * Lists stay fast with millions of rows: each statement reads a bounded number of rows through an index, whatever the
 * filter. The tests use few rows, but in a distribution that misleads the planner: some tenants and endpoints have had no
 * rows for a long time, others have nearly all of them.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillAuditLog, fillEndpoints, fillHistory, RARE_TYPE } from '../../bench/fill-history.ts';
import { deliveryRangeOfEvent, firstIdAt, newEventId, type Uuid } from '../../src/domain/ids.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { listAuditEntries } from '../../src/postgres/queries/audit-log.ts';
import { groupDeadLetters } from '../../src/postgres/queries/dead-letter-groups.ts';
import { listDeadLetters } from '../../src/postgres/queries/dead-letters.ts';
import { listAttempts } from '../../src/postgres/queries/deliveries.ts';
import { listEndpoints } from '../../src/postgres/queries/endpoints.ts';
import { countOutcomes, MAX_COUNTED_PER_EVENT } from '../../src/postgres/queries/event-outcomes.ts';
import { findEventsByKey, listEvents } from '../../src/postgres/queries/events.ts';
import { listKeys } from '../../src/postgres/queries/keys.ts';
import { listDeliveries } from '../../src/postgres/queries/list-deliveries.ts';
import { type ListResult, MAX_EXAMINED } from '../../src/postgres/queries/list-query.ts';
import {
  countSelected,
  type Selection,
  selectDeliveries,
} from '../../src/postgres/queries/select-deliveries.ts';
import { listTasks } from '../../src/postgres/queries/tasks.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Watched, watchPlans } from '../support/plans.ts';

const DELIVERIES = 30_000;
const SPAN_MS = 20 * 3_600_000;
const LIMIT = 51;
const GROWING = [
  'events',
  'queue',
  'deliveries',
  'dead_letters',
  'attempts',
  'audit_log',
  'idempotency_keys',
];

let database: TestDatabase;
let connections: Database;
let watched: Watched;
let tenants: string[];
let endpoints: { id: Uuid; tenant: string }[];
let event: { id: Uuid; tenant: string; key: string };

beforeAll(async () => {
  database = await createTestDatabase();
  connections = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  await fillEndpoints(database.query, 200);
  await fillHistory(database.query, {
    deliveries: DELIVERIES,
    spanMs: SPAN_MS,
    perMille: { dead: 150, waiting: 150, discarded: 5, skipped: 5 },
    attemptsPercent: 20,
    dataBytes: 20,
  });
  await fillAuditLog(database.query, 20_000, SPAN_MS);
  watched = watchPlans(connections.pool('api'));
  endpoints = await database.query('select id, tenant from posthorn.endpoints order by id');
  // Tenants with the most, second most and fewest endpoints, and one that does not exist.
  const bySize = await database.query(
    'select tenant from posthorn.endpoints group by 1 order by count(*) desc',
  );
  tenants = [bySize[0]!.tenant, bySize[1]!.tenant, bySize.at(-1)!.tenant, 'nobody'];
  [event] = (await database.query(
    'select event_id as id, tenant, key from posthorn.idempotency_keys limit 1',
  )) as [typeof event];
}, 60_000);

afterAll(async () => {
  await connections?.close();
  await database?.drop();
});

/** The first page, a page deep in the past, and a short time range. */
const ranges = () => {
  const at = (share: number) => firstIdAt(Date.now() - share * SPAN_MS);
  return [
    { from: null, before: null },
    { from: null, before: at(0.8) },
    { from: at(0.5), before: at(0.49) },
  ];
};
const types = [null, 'type.00', 'type.19', RARE_TYPE, 'no.such'];

interface Bounds {
  /** How many rows may be read of one table, at most. */
  readonly rows: number;
  readonly sorted?: number;
}

function expectBounded(name: string, { rows, sorted = 2 * rows }: Bounds): void {
  const seen = watched.take();
  for (const table of GROWING) {
    const scans = seen.visited.filter((visited) => visited.table === table);
    const read = scans.reduce((sum, scan) => sum + scan.rows, 0);
    expect(
      read,
      `${name}: rows of ${table} (${scans.map(({ scan }) => scan).join(', ')})`,
    ).toBeLessThanOrEqual(rows);
    const sequential = scans.filter(({ scan, rows: some }) => /^(Seq|Bitmap)/.test(scan) && some > 0);
    expect(sequential, name).toEqual([]);
  }
  expect(seen.sorted, `${name}: rows sorted`).toBeLessThanOrEqual(sorted);
}

test('a list of deliveries reads a bounded number of rows, by every filter', async () => {
  const statuses = [
    null,
    'waiting',
    'pending',
    'retrying',
    'delivered',
    'dead',
    'discarded',
    'skipped',
  ] as const;
  const places = [
    { tenant: null, endpointId: null, eventId: null },
    ...tenants.map((tenant) => ({ tenant, endpointId: null, eventId: null })),
    ...[endpoints[0]!, endpoints.at(-1)!].map(({ id }) => ({ tenant: null, endpointId: id, eventId: null })),
    { tenant: endpoints.at(-1)!.tenant, endpointId: endpoints.at(-1)!.id, eventId: null },
  ];
  for (const place of places)
    for (const status of statuses)
      for (const type of status === null || status === 'delivered'
        ? [null, 'type.00', RARE_TYPE]
        : [null, 'type.19'])
        for (const range of type === null ? ranges() : ranges().slice(1, 2)) {
          await listDeliveries(watched.pool, { ...place, status, type, ...range, limit: LIMIT });
          const isPlain = type === null && (status === null || status === 'waiting');
          // Found by endpoint: one page for each. Found through events: the rows that match. A dead letter may also be in the queue.
          const rows = isPlain && place.tenant === null ? MAX_EXAMINED : MAX_EXAMINED + 50 * LIMIT;
          expectBounded(JSON.stringify({ ...place, status, type, ...range }), { rows });
        }
});

test('the list of deliveries of an event reads a bounded number of rows', async () => {
  const [first, last] = deliveryRangeOfEvent(event.id);
  for (const tenant of [null, event.tenant, 'nobody']) {
    const filter = { tenant, endpointId: null, eventId: event.id, type: null, limit: LIMIT };
    for (const status of [null, 'delivered', 'skipped', 'dead'] as const) {
      await listDeliveries(watched.pool, { ...filter, status, from: first, before: last });
      expectBounded(`${tenant} ${status}`, { rows: 10 });
    }
  }
  await listAttempts(watched.pool, { first, last, after: null, limit: LIMIT });
  expectBounded('attempts', { rows: 10 });
});

test('a list of events reads a bounded number of rows, by every filter', async () => {
  for (const tenant of [null, ...tenants])
    for (const type of types)
      for (const range of ranges()) {
        await listEvents(watched.pool, { tenant, type, ...range, limit: LIMIT });
        expectBounded(JSON.stringify({ tenant, type, ...range }), {
          rows: type === null ? LIMIT : MAX_EXAMINED,
        });
      }
  for (const range of ranges()) {
    const { rows } = await listEvents(watched.pool, { tenant: null, type: null, ...range, limit: LIMIT });
    watched.take();
    await countOutcomes(
      watched.pool,
      rows.map(({ id }) => id),
      MAX_COUNTED_PER_EVENT,
    );
    expectBounded('outcomes', { rows: 10 * LIMIT });
  }
  for (const tenant of [null, event.tenant]) {
    await findEventsByKey(watched.pool, tenant, event.key, 'default');
    expectBounded('by key', { rows: 10 });
  }
});

test('lists of dead letters and of their groups read a bounded number of rows, by every filter', async () => {
  const wheres = [
    { tenant: null, endpointId: null },
    ...tenants.map((tenant) => ({ tenant, endpointId: null })),
    ...[endpoints[0]!, endpoints.at(-1)!].map(({ id }) => ({ tenant: null, endpointId: id })),
    { tenant: endpoints[0]!.tenant, endpointId: endpoints[0]!.id },
    { tenant: 'nobody', endpointId: endpoints[0]!.id },
  ];
  for (const where of wheres)
    for (const type of [null, 'type.00', RARE_TYPE])
      for (const reason of [null, 'exhausted', 'gone', 'worker_crash'] as const)
        for (const range of ranges()) {
          await listDeadLetters(watched.pool, { ...where, type, reason, ...range, limit: LIMIT });
          const rows = type === null && reason === null ? LIMIT : MAX_EXAMINED;
          expectBounded(JSON.stringify({ ...where, type, reason, ...range }), { rows });
        }
  for (const tenant of [null, tenants[1]!]) {
    await groupDeadLetters(watched.pool, tenant, 500);
    expectBounded('groups', { rows: 500 });
  }
});

test('the estimate before a task is created reads a bounded number of rows', async () => {
  const MOST = 2000;
  const anything = {
    tenant: null,
    endpointId: null,
    type: null,
    reason: null,
    since: null,
    until: null,
    ids: null,
  };
  const { id: endpointId, tenant } = endpoints[0]!;
  const recently = { since: Date.now() - SPAN_MS / 2, until: Date.now() };
  const dead = ['dead'] as const;
  const selections: Selection[] = [
    ...[{}, { type: RARE_TYPE }, { type: 'no.such', reason: 'gone' as const }, recently].flatMap((what) => [
      { ...anything, statuses: dead, ...what },
      ...tenants.map((one) => ({ ...anything, statuses: dead, tenant: one, ...what })),
      { ...anything, statuses: dead, endpointId, ...what },
    ]),
    ...[dead, ['dead', 'skipped'], ['discarded'], ['delivered', 'pending'], ['retrying']].map((statuses) => ({
      ...anything,
      ...recently,
      tenant,
      endpointId,
      statuses: statuses as Selection['statuses'],
    })),
  ];
  const [{ ids }] = (await database.query(
    `select array_agg(id::text) as ids from (select id from posthorn.dead_letters limit 20) few`,
  )) as [{ ids: Uuid[] }];
  for (const selection of [...selections, { ...anything, statuses: dead, ids }]) {
    const name = JSON.stringify(selection);
    const { count, more } = await countSelected(watched.pool, selection, MOST);
    expectBounded(name, { rows: MOST });
    // With a limit above the number of rows, the count is exact.
    const all = await countSelected(connections.pool('api'), selection, 10 * DELIVERIES);
    expect(all, name).toMatchObject({ count: await countSlowly(selection), more: false });
    expect(count, name).toBeLessThanOrEqual(all.count);
    if (!more) expect(count, name).toBe(all.count);
  }
});

/** Counts with the statement that a task uses. */
async function countSlowly(selection: Selection): Promise<number> {
  const values: unknown[] = [];
  const query = selectDeliveries(
    selection,
    { limit: String(DELIVERIES) },
    (value) => `$${values.push(value)}`,
  );
  return (await database.query(query, values)).length;
}

test('the audit log reads a bounded number of rows, by every filter and by two at once', async () => {
  const none = { tenant: null, actor: null, byOperator: null, action: null, objectId: null };
  const filters = [
    none,
    { ...none, tenant: 'tenant-03' },
    { ...none, actor: 'key-7' },
    { ...none, action: 'key.delete' },
    { ...none, action: 'endpoint.update' },
    { ...none, objectId: 'ep-7' },
    { ...none, actor: 'admin', action: 'key.delete' },
    { ...none, tenant: 'tenant-03', action: 'no.such' },
    { ...none, tenant: 'tenant-03', byOperator: true },
  ];
  for (const filter of filters)
    for (const range of ranges()) {
      await listAuditEntries(watched.pool, { ...filter, ...range, limit: LIMIT });
      const isOne = Object.values(filter).filter((value) => value !== null).length < 2;
      expectBounded(JSON.stringify({ ...filter, ...range }), { rows: isOne ? LIMIT : MAX_EXAMINED });
    }
});

test('lists of endpoints (with their waiting and dead deliveries), tasks and keys read a bounded number of rows', async () => {
  for (const tenant of [null, ...tenants])
    for (const before of [null, endpoints[100]!.id]) {
      await listEndpoints(watched.pool, { tenant, before, limit: LIMIT });
      expectBounded(`endpoints of ${tenant}`, { rows: DELIVERIES / 4 });
      await listTasks(watched.pool, { tenant, state: null, from: null, before, limit: LIMIT });
      await listKeys(watched.pool, { tenant, before, limit: LIMIT });
      expectBounded(`tasks and keys of ${tenant}`, { rows: 0 });
    }
});

/** All pages of a list, with something happening between any two. */
async function walk(
  list: (before: Uuid | null) => Promise<ListResult<{ id: Uuid }>>,
  between: () => Promise<unknown> = async () => {},
): Promise<Uuid[]> {
  const seen: Uuid[] = [];
  for (let before: Uuid | null = null; ; ) {
    const { rows, resumeAt }: ListResult<{ id: Uuid }> = await list(before);
    expect(resumeAt === null || rows.length < 500, 'a full page ends at its last row').toBe(true);
    seen.push(...rows.map(({ id }) => id));
    before = rows.length === 500 ? rows.at(-1)!.id : resumeAt;
    if (before === null) return seen;
    await between();
  }
}

const EVERYWHERE = `(
  select id, tenant, endpoint_id, event_type, case when attempts > 0 then 'retrying' else 'pending' end as status from posthorn.queue
  union all select id, tenant, endpoint_id, event_type, 'dead' from posthorn.dead_letters
  union all select id, tenant, endpoint_id, event_type, status from posthorn.deliveries)`;

test('all pages together contain each match once, also if a page ends early', async () => {
  const anywhere = { tenant: null, endpointId: null, eventId: null, from: null };
  const wheres = [
    anywhere,
    ...tenants.map((tenant) => ({ ...anywhere, tenant })),
    { ...anywhere, endpointId: endpoints[0]!.id },
  ];
  const pool = connections.pool('api');
  for (const where of wheres)
    for (const [status, type] of [
      [null, 'type.19'],
      [null, RARE_TYPE],
      ['delivered', 'type.12'],
      ['retrying', null],
      ['dead', 'type.00'],
      ['skipped', null],
    ] as const) {
      const truth = await database.query(
        `select id from ${EVERYWHERE} d where ($1::text is null or tenant = $1) and ($2::uuid is null or endpoint_id = $2)
            and ($3::text is null or status = $3) and ($4::text is null or event_type = $4) order by id desc`,
        [where.tenant, where.endpointId, status, type],
      );
      const seen = await walk((before) =>
        listDeliveries(pool, { ...where, status, type, before, limit: 500 }),
      );
      expect(seen, JSON.stringify({ ...where, status, type })).toEqual(truth.map(({ id }) => id));
    }
});

test('pages have no overlaps or gaps while deliveries move between tables and others are added', async () => {
  const pool = connections.pool('api');
  for (const tenant of [null, tenants[0]!, tenants[1]!]) {
    const before = await database.query(
      `select id from ${EVERYWHERE} d where ($1::text is null or tenant = $1) order by id desc`,
      [tenant],
    );
    // Moves random rows between queue, dead letters and history, and adds new ones.
    const moves = () =>
      database.query(
        `with settled as (delete from posthorn.queue where id in (select id from posthorn.queue order by random() limit 40) returning *),
         revived as (delete from posthorn.dead_letters where id in (select id from posthorn.dead_letters order by random() limit 40) returning *),
         history as (insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, finished_at, tenant, event_type)
                     select id, endpoint_id, 'delivered', 1, 0, now(), tenant, event_type from settled where attempts > 0),
         dead as (insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, dead_at, tenant, event_type)
                  select id, endpoint_id, 'exhausted', 1, 0, now(), tenant, event_type from settled where attempts = 0),
         fresh as (insert into posthorn.events (id, tenant, type, deliveries)
                   select $1, tenant, 'type.00', 1 from posthorn.endpoints where id = $2 returning *)
         insert into posthorn.queue (id, endpoint_id, tenant, event_type)
         select id, endpoint_id, tenant, event_type from revived
         union all select id, $2, tenant, type from fresh`,
        [newEventId(Date.now()), endpoints[0]!.id],
      );
    const all = { tenant, endpointId: null, eventId: null, status: null, type: null, from: null };
    const seen = await walk((end) => listDeliveries(pool, { ...all, before: end, limit: 500 }), moves);
    expect(new Set(seen).size, 'no overlap').toBe(seen.length);
    expect(seen).toEqual(before.map(({ id }) => id));
  }
});
