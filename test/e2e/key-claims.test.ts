/** SCL-2: idempotency keys of events that wait in the accept topic. The rules are in test/conformance/key-claims.ts. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newEventId, publicId } from '../../src/domain/ids.ts';
import type { KeyClaims } from '../../src/ports/event-log.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createPostgresKafkaStore } from '../../src/postgres/kafka-store.ts';
import { createPostgresKeyClaims } from '../../src/postgres/key-claims.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let testDatabase: TestDatabase;
let database: Database;
let claims: KeyClaims;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({
    connectionString: testDatabase.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  claims = createPostgresKeyClaims(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => testDatabase.query('truncate posthorn.events, posthorn.idempotency_keys'));

const first = newEventId(Date.now());

test('the tombstone of a tenant tells which of its records are not stored any more: by the end of the deletion, not by ids', async () => {
  const kafka = createPostgresKafkaStore(database);
  // `at` is later than the newest id of the tenant, which a node with a clock that was ahead has made.
  await testDatabase.query(
    "insert into posthorn.expunged (kind, id, at, applied_at) values ('tenant', 'gone', '2026-01-05T00:00:00Z', '2026-01-02T00:00:00Z')",
  );
  expect(await kafka.readDeletedTenants(['gone', 'acme'])).toEqual(new Map([['gone', Date.UTC(2026, 0, 2)]]));
});

test('OUT-1: posthorn.publish takes a key that is only claimed: the claimed event may never be stored', async () => {
  await claims.claim([{ tenant: 'acme', key: 'k', eventId: first, fingerprint: Buffer.from('{}') }], {
    idempotencyTtlMs: 3_600_000,
    now: Date.now(),
    mayExpireKeys: true,
  });
  const [row] = await testDatabase.query<{ id: string }>(
    "select posthorn.publish('a.b', '{}', 'acme', 'k') as id",
  );
  const outbox = await testDatabase.query("delete from posthorn.outbox where tenant = 'acme' returning id");
  expect(outbox).toHaveLength(1);
  expect(row!.id).not.toBe(publicId('evt', first));
});
