/** SCL-2: idempotency keys of events that wait in the accept topic. No broker is needed. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newEventId, publicId, type Uuid } from '../../src/domain/ids.ts';
import type { ClaimHolder, KeyClaims } from '../../src/ports/event-log.ts';
import { type EventRecord, type EventStore, idempotencyKeyName } from '../../src/ports/event-store.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createPostgresEventStore } from '../../src/postgres/event-store.ts';
import { createPostgresKafkaStore } from '../../src/postgres/kafka-store.ts';
import { createPostgresKeyClaims } from '../../src/postgres/key-claims.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let testDatabase: TestDatabase;
let database: Database;
let claims: KeyClaims;
let log: EventStore;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({
    connectionString: testDatabase.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  claims = createPostgresKeyClaims(database);
  log = createPostgresEventStore({ database, ensurePartitions: async () => {} });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => testDatabase.query('truncate posthorn.events, posthorn.idempotency_keys'));

const HOUR_MS = 3_600_000;
const claim = async (eventId: Uuid, data = '{}', ttlMs = HOUR_MS): Promise<ClaimHolder> => {
  const holders = await claims.claim(
    [{ tenant: 'acme', key: 'k', eventId, fingerprint: Buffer.from(data) }],
    { idempotencyTtlMs: ttlMs, now: Date.now(), mayExpireKeys: true },
  );
  return holders.get(idempotencyKeyName('acme', 'k'))!;
};

const eventOf = (id: Uuid, data = '{}'): EventRecord => ({
  id,
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.from(data),
  idempotencyKey: 'k',
  fingerprint: Buffer.from(data),
  options: null,
  deliveries: [],
  skipped: [],
});

async function store(event: EventRecord): Promise<boolean> {
  const [version] = await testDatabase.query<{ version: string }>(
    'select version::text from posthorn.subscription_version',
  );
  const result = await log.append([event], {
    endpointVersion: Number(version!.version),
    mayBeStored: true,
    idempotencyTtlMs: HOUR_MS,
    outboxSeqs: null,
  });
  if (result.stale) throw new Error('stale');
  return result.written === 'all' || result.written.has(event.id);
}

const [first, second] = [newEventId(Date.now()), newEventId(Date.now() + 1)];

test('the first event gets the key, and the second one learns that it is claimed', async () => {
  expect(await claim(first)).toMatchObject({ eventId: first, isClaimed: true });
  const held = await claim(second, 'other');
  expect(held).toMatchObject({ eventId: first, isClaimed: true, fingerprint: Buffer.from('{}') });
});

test('storing the event of the claim ends the claim', async () => {
  await claim(first);
  expect(await store(eventOf(first))).toBe(true);
  expect(await claim(second)).toMatchObject({ eventId: first, isClaimed: false, type: 'a.b' });
  // Kafka has it twice.
  expect(await store(eventOf(first))).toBe(false);
});

test('an event that is stored directly takes a claimed key over, and the claimed one does not get it back', async () => {
  await claim(first);
  expect(await store(eventOf(second))).toBe(true);
  expect(await store(eventOf(first))).toBe(false);
  expect(await claim(first)).toMatchObject({ eventId: second, isClaimed: false });
});

test('an expired key is claimed again', async () => {
  await claim(first, '{}', 1);
  await testDatabase.query("update posthorn.idempotency_keys set expires_at = now() - interval '1 second'");
  expect(await claim(second, 'other')).toMatchObject({ eventId: second, isClaimed: true });
});

test('the tombstone of a tenant tells which of its records are not stored any more: by the end of the deletion, not by ids', async () => {
  const kafka = createPostgresKafkaStore(database);
  // `at` is later than the newest id of the tenant, which a node with a clock that was ahead has made.
  await testDatabase.query(
    "insert into posthorn.expunged (kind, id, at, applied_at) values ('tenant', 'gone', '2026-01-05T00:00:00Z', '2026-01-02T00:00:00Z')",
  );
  expect(await kafka.readDeletedTenants(['gone', 'acme'])).toEqual(new Map([['gone', Date.UTC(2026, 0, 2)]]));
});

test('OUT-1: posthorn.publish takes a key that is only claimed: the claimed event may never be stored', async () => {
  await claim(first);
  const [row] = await testDatabase.query<{ id: string }>(
    "select posthorn.publish('a.b', '{}', 'acme', 'k') as id",
  );
  const outbox = await testDatabase.query("delete from posthorn.outbox where tenant = 'acme' returning id");
  expect(outbox).toHaveLength(1);
  expect(row!.id).not.toBe(publicId('evt', first));
});
