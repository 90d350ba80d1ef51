/** The control plane by itself, as a program would call it: without HTTP. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { STRICT_EGRESS } from '../../src/deliver/index.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { ApiKeyFormat } from '../../src/manage/api-keys.ts';
import { AuditTrail } from '../../src/manage/audit-trail.ts';
import type { Actor, Caller } from '../../src/manage/caller.ts';
import { Confirmations } from '../../src/manage/confirmations.ts';
import { type ControlPlane, createControlPlane } from '../../src/manage/control-plane.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createEndpointCache } from '../../src/postgres/endpoint-cache.ts';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let testDatabase: TestDatabase;
let database: Database;
let manage: ControlPlane;
const revoked: string[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({
    connectionString: testDatabase.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  const pool = database.pool('api');
  const secretBox = createSecretBox(Buffer.alloc(32, 7));
  manage = createControlPlane({
    pool,
    clock: systemClock,
    endpoints: createEndpointCache(pool, secretBox, () => {}),
    secretBox,
    keyFormat: new ApiKeyFormat(Buffer.alloc(32)),
    egress: STRICT_EGRESS,
    challenges: { challenger: async () => null, maxConcurrent: 4, isRequired: false, tokenHosts: [] },
    maxTasksPerTenant: 100,
    leaseMs: 0,
    endpointLimits: { perTenant: 10_000, patternsPerTenant: 1_000, unique: false },
    operatorTenant: 'posthorn',
    notifiers: {
      confirmations: new Confirmations({
        pool,
        clock: systemClock,
        secretBox,
        confirmationTtlMs: 1000,
        publicUrl: 'https://posthorn.test',
      }),
      hasMail: false,
      chatHosts: [],
      requiresChallenge: false,
    },
    signatureOverlapMs: 1000,
    discardUndoMs: 1000,
    retentionDays: 90,
    wake: () => {},
    onKeyChanged: () => revoked.push('revoked'),
    onCatalogueChanged: async () => {},
    wakeProbe: () => {},
    hasArchive: false,
    readKafkaLifetime: null,
    onKafkaProblem: () => {},
  });
});
afterAll(async () => {
  await database?.close();
  await testDatabase?.drop();
});

const ADMIN: Caller = { keyId: null, scope: 'admin', scopes: null, tenant: null, prefix: null };

const actorWith = (requestId: string, caller = ADMIN): Actor => ({
  caller,
  audit: new AuditTrail({ caller, requestId, address: '192.0.2.1' }, systemClock, 'unnamed'),
});

const actionsOf = async (requestId: string): Promise<unknown[]> =>
  (
    await testDatabase.query('select action from posthorn.audit_log where request_id = $1 order by id', [
      requestId,
    ])
  ).map(({ action }) => action);

test('SEC-4: a change records its own action, whatever the default action of the trail is', async () => {
  const { record } = await manage.keys.create(actorWith('made'), { scope: 'tenant', tenant: 'acme' });
  await manage.keys.revoke(actorWith('revoked'), record.id);
  await manage.tenants.put(actorWith('put'), 'acme', { name: 'Acme' });
  const { endpoint } = await manage.endpoints.create(actorWith('endpoint'), {
    url: 'https://example.com/hooks',
    tenant: 'acme',
  });
  await manage.endpoints.pause(actorWith('pause'), endpoint.id);
  expect(await actionsOf('made')).toEqual(['key.create']);
  expect(await actionsOf('revoked')).toEqual(['key.delete']);
  expect(await actionsOf('put')).toEqual(['tenant.update']);
  expect(await actionsOf('endpoint')).toEqual(['endpoint.create']);
  expect(await actionsOf('pause')).toEqual(['endpoint.pause']);
  expect(revoked).toEqual(['revoked']);
});

test('SEC-4: a change whose audit entry cannot be written is not made', async () => {
  const unrecorded = actorWith(null as unknown as string);
  await expect(manage.eventTypes.put(unrecorded, 'order.created', {})).rejects.toThrow('not-null constraint');
  expect(await testDatabase.query('select from posthorn.event_types')).toEqual([]);
  expect(unrecorded.audit.isComplete).toBe(false);
});

test('a change that changes nothing leaves no audit entry', async () => {
  await manage.eventTypes.put(actorWith('first'), 'order.paid', { description: 'An order was paid.' });
  const again = actorWith('again');
  const { created } = await manage.eventTypes.put(again, 'order.paid', { description: 'An order was paid.' });
  expect(created).toBe(false);
  expect(again.audit.isComplete).toBe(true);
  expect(await actionsOf('again')).toEqual([]);
});

test("SEC-2: a tenant's caller cannot change another tenant's endpoint, and does not learn that it exists", async () => {
  const { endpoint } = await manage.endpoints.create(actorWith('theirs'), {
    url: 'https://example.com/hooks',
    tenant: 'theirs',
  });
  const stranger = actorWith('stranger', { ...ADMIN, scope: 'tenant', tenant: 'ours' });
  await expect(manage.endpoints.delete(stranger, endpoint.id)).rejects.toMatchObject({ code: 'not_found' });
  await expect(manage.endpointSecrets.show(stranger, endpoint.id)).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(await actionsOf('stranger')).toEqual([]);
});
