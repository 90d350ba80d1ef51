import { randomBytes } from 'node:crypto';
import type { Uuid } from '../../../src/domain/ids.ts';
import type { OwnershipSession, OwnershipStore } from '../../../src/ports/ownership-store.ts';
import { createPostgresCatalogueStore } from '../../../src/postgres/catalogue-store.ts';
import { createPostgresConversionStore } from '../../../src/postgres/conversion-store.ts';
import { type Database, inTransaction, openDatabase, type Purpose } from '../../../src/postgres/database.ts';
import { createPostgresDeliveryQueue } from '../../../src/postgres/delivery-queue.ts';
import { createEndpointCache } from '../../../src/postgres/endpoint-cache.ts';
import { createPostgresEventLookup, createPostgresEventStore } from '../../../src/postgres/event-store.ts';
import { createPostgresFanOutStore } from '../../../src/postgres/fan-out-store.ts';
import { createPostgresKafkaStore } from '../../../src/postgres/kafka-store.ts';
import { createPostgresKeyClaims } from '../../../src/postgres/key-claims.ts';
import { createPostgresOutboxStore } from '../../../src/postgres/outbox-store.ts';
import { createPostgresOwnershipStore } from '../../../src/postgres/ownership-store.ts';
import { ensurePartitions } from '../../../src/postgres/partitions.ts';
import { createPostgresPeerDirectory } from '../../../src/postgres/peer-directory.ts';
import { putEventTypeVersion } from '../../../src/postgres/queries/event-type-versions.ts';
import { lockEventType, putEventType } from '../../../src/postgres/queries/event-types.ts';
import { expungePayload } from '../../../src/postgres/queries/expunge-payload.ts';
import { parseReceivedHeaders } from '../../../src/postgres/received-headers.ts';
import { createSecretBox } from '../../../src/postgres/secret-box.ts';
import { createPostgresTaskStore } from '../../../src/postgres/task-store.ts';
import { createPostgresTenantLimits } from '../../../src/postgres/tenant-limits.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import {
  EVERYTHING,
  type LoggedAttempt,
  type StoreFixture,
  type StorePorts,
  type TaskState,
  type UnreliableStore,
} from './fixture.ts';
import { endpointIdOf, newId } from './ids.ts';

const CLEAR = `
  truncate posthorn.events, posthorn.queue, posthorn.deliveries, posthorn.dead_letters, posthorn.attempts,
           posthorn.endpoint_health, posthorn.operational_notes, posthorn.idempotency_keys, posthorn.workers, posthorn.outbox,
           posthorn.outbox_rejected, posthorn.tasks, posthorn.fan_out_slices, posthorn.converted_payloads,
           posthorn.batches, posthorn.open_batches, posthorn.debounce_keys, posthorn.debounce_windows, posthorn.debounced,
           posthorn.peers, posthorn.schema_failures, posthorn.event_types,
           posthorn.kafka_records, posthorn.kafka_partitions, posthorn.kafka_consumers, posthorn.kafka_awaited_topics cascade;
  update posthorn.tenants set ingest_per_second = null, ingest_burst = null, validation = 'off';
  update posthorn.shards set owner = null, taken_at = null, unclean_at = '{}'`;

export async function createPostgresFixture(): Promise<StoreFixture> {
  const test = await createTestDatabase();
  const databases: Database[] = [];
  const sessions: OwnershipSession[] = [];
  const open = (url = test.url): Database => {
    const database = openDatabase({
      connectionString: url,
      apiConnections: 2,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    databases.push(database);
    return database;
  };
  const database = open();
  const proxy = await startTcpProxy(test.url);
  return {
    ...createPorts(database),
    ...createInspection(test),
    ...createAdministration(test),
    expunge: (id) =>
      inTransaction(database.pool('api'), async (client) => {
        await expungePayload(client, { id, tenant: 'acme' }, 'test');
      }),
    unreliable: createUnreliable(open(proxy.url), proxy),
    putSchema: (name, version, schema) => putSchema(database, name, version, schema),
    createOwnership: () => recordSessions(createPostgresOwnershipStore(open()), sessions),
    createDirectory: () =>
      createEndpointCache(database.pool('lookup'), createSecretBox(randomBytes(32)), () => {}),
    async clear() {
      for (const session of sessions.splice(0)) session.close();
      await test.query(CLEAR);
    },
    async close() {
      for (const session of sessions) session.close();
      await Promise.all(databases.map((each) => each.close()));
      await proxy.cut();
      await test.drop();
    },
  };
}

function recordSessions(ownership: OwnershipStore, sessions: OwnershipSession[]): OwnershipStore {
  return {
    readFacts: () => ownership.readFacts(),
    moveLanes: (workerId, lanes) => ownership.moveLanes(workerId, lanes),
    readTimeline: () => ownership.readTimeline(),
    async connect(worker, onLost) {
      const session = await ownership.connect(worker, onLost);
      sessions.push(session);
      return session;
    },
  };
}

function createPorts(database: Database): StorePorts {
  return {
    eventStore: createPostgresEventStore({
      database,
      ensurePartitions: async (idTimes) =>
        void (await ensurePartitions(database.pool('api'), { days: 7, ...idTimes })),
    }),
    eventLookup: createPostgresEventLookup(database),
    queue: createPostgresDeliveryQueue(database),
    outbox: createPostgresOutboxStore(database),
    fanOuts: createPostgresFanOutStore(database),
    conversions: createPostgresConversionStore(database),
    tasks: createPostgresTaskStore(database),
    peers: createPostgresPeerDirectory(database),
    tenantLimits: createPostgresTenantLimits(database),
    catalogue: createPostgresCatalogueStore(database),
    kafka: createPostgresKafkaStore(database),
    claims: createPostgresKeyClaims(database),
  };
}

const POOLS: readonly Purpose[] = ['ingest', 'settle', 'dispatch', 'outbox', 'api', 'lookup'];

function createUnreliable(
  database: Database,
  proxy: Awaited<ReturnType<typeof startTcpProxy>>,
): UnreliableStore {
  // Connect first: the fault must hit the statement of the test, not the connection attempt.
  const connectAll = () => Promise.all(POOLS.map((purpose) => database.pool(purpose).query('select 1')));
  return {
    ...createPorts(database),
    async loseNextAnswer() {
      await connectAll();
      proxy.cutAt('answer');
    },
    async loseNextRequest() {
      await connectAll();
      proxy.cutAt('request');
    },
  };
}

function putSchema(
  database: Database,
  name: string,
  version: string | null,
  schema: Record<string, unknown> | boolean | null,
): Promise<void> {
  const type = {
    ...{ name, description: '', schema: null, example: null },
    ...{ deprecated: false, sunset_at: null, validation: null },
  };
  return inTransaction(database.pool('api'), async (client) => {
    const known = await lockEventType(client, name);
    if (version === null || known === null)
      await putEventType(client, { ...type, ...(version === null && { schema }) });
    if (version !== null)
      await putEventTypeVersion(client, {
        ...{ event_type: name, version, description: '', changelog: '', schema, example: null },
        ...{ status: 'active', sunset_at: null },
      });
  });
}

type Inspection = Pick<
  StoreFixture,
  | 'findDelivery'
  | 'attemptsOf'
  | 'endpointNoteIds'
  | 'findTask'
  | 'hasTenant'
  | 'rejectedOutbox'
  | 'outboxIds'
  | 'kafkaPosition'
  | 'schemaFailureIds'
  | 'endpointVersion'
>;

function createInspection({ query }: TestDatabase): Inspection {
  return {
    async findDelivery(id) {
      const rows = await query(
        `select 'queue' as place, 'waiting' as status, null as reason, attempts, replays from posthorn.queue where id = $1
         union all
         select 'dead_letters', 'dead', reason, attempts, replays from posthorn.dead_letters where id = $1
         union all
         select 'finished', status, reason, attempts, replays from posthorn.deliveries where id = $1`,
        [id],
      );
      // A dead letter that is being replayed is in two tables. The first row is that of the queue.
      return (rows[0] as Awaited<ReturnType<Inspection['findDelivery']>>) ?? null;
    },
    async attemptsOf(id) {
      const rows = await query<LoggedAttempt & Record<string, unknown>>(
        `select id, number, outcome, worker, trigger, status_code as "statusCode", error_message as "errorMessage",
                response_headers as "responseHeaders", response_body as "responseBody"
           from posthorn.attempts where delivery_id = $1 order by id`,
        [id],
      );
      return rows.map((row) => ({
        ...row,
        responseHeaders: row.responseHeaders && JSON.stringify(parseReceivedHeaders(row.responseHeaders)),
      }));
    },
    async endpointNoteIds() {
      const rows = await query<{ id: Uuid }>(
        'select id from posthorn.operational_notes where id is not null',
      );
      return rows.map(({ id }) => id);
    },
    async findTask(id) {
      const rows = await query<TaskState & Record<string, unknown>>(
        'select state, total, done, failed, error from posthorn.tasks where id = $1',
        [id],
      );
      return rows[0]!;
    },
    async hasTenant(name) {
      return (await query('select from posthorn.tenants where id = $1', [name])).length === 1;
    },
    rejectedOutbox: () => query('select id, reason from posthorn.outbox_rejected order by rejected_at'),
    async outboxIds() {
      const rows = await query<{ id: Uuid }>('select id from posthorn.outbox order by seq');
      return rows.map(({ id }) => id);
    },
    async kafkaPosition(partitionId) {
      const rows = await query<{ position: number; done: number[] }>(
        'select position::int, done::int[] from posthorn.kafka_partitions where id = $1',
        [partitionId],
      );
      return rows[0]!;
    },
    async schemaFailureIds() {
      const rows = await query<{ id: Uuid }>('select id from posthorn.schema_failures order by id');
      return rows.map(({ id }) => id);
    },
    async endpointVersion() {
      const rows = await query<{ version: string }>('select version from posthorn.subscription_version');
      return Number(rows[0]!.version);
    },
  };
}

type Administration = Pick<
  StoreFixture,
  | 'createEndpoint'
  | 'changeRegion'
  | 'setEnabled'
  | 'deleteEndpoint'
  | 'publish'
  | 'setTenantLimit'
  | 'setTenantMode'
  | 'agePeer'
  | 'createTask'
  | 'cancelTask'
  | 'ageKafkaConsumer'
  | 'ageWorker'
  | 'forgetRenewal'
  | 'stepClockBack'
  | 'breakSession'
>;

const NEXT_VERSION =
  'with next as (update posthorn.subscription_version set version = version + 1 returning version)';

function createAdministration({ query }: TestDatabase): Administration {
  return {
    async createEndpoint({ config = {}, shard } = {}) {
      const id = endpointIdOf(shard);
      await query(
        `${NEXT_VERSION} insert into posthorn.endpoints (id, tenant, url, config, version)
         select $1, 'acme', 'https://receiver.test/', $2, version from next`,
        [id, config],
      );
      return id;
    },
    async changeRegion(id, region) {
      await query(
        `${NEXT_VERSION} update posthorn.endpoints e
            set wanted_shard = (select posthorn.shard_in(number, e.id) from posthorn.regions where name = $2),
                placement = placement + 1, version = next.version from next where id = $1`,
        [id, region],
      );
    },
    async setEnabled(id, enabled) {
      await query(
        `${NEXT_VERSION} update posthorn.endpoints e set enabled = $2, disabled_reason = $3, version = next.version,
                enabled_since = case when $2 then now() else enabled_since end from next where id = $1`,
        [id, enabled, enabled ? null : 'manual'],
      );
    },
    async deleteEndpoint(id) {
      await query(
        `${NEXT_VERSION} update posthorn.endpoints e set deleted_at = now(), version = next.version from next where id = $1`,
        [id],
      );
    },
    async publish({ id, tenant, type, data, idempotencyKey, options }, ageMs = 0) {
      await query(
        `insert into posthorn.outbox (id, tenant, type, data, idempotency_key, fingerprint, options, created_at)
         values ($1, $2, $3, $4, $5, case when $5::text is null then null else sha256($4) end, $6,
                 clock_timestamp() - make_interval(secs => $7))`,
        [id, tenant, type, data, idempotencyKey, options, ageMs / 1000],
      );
    },
    async setTenantLimit(tenant, limit) {
      await query(
        `insert into posthorn.tenants (id, ingest_per_second, ingest_burst) values ($1, $2, $3)
             on conflict (id) do update set ingest_per_second = $2, ingest_burst = $3`,
        [tenant, limit?.perSecond ?? null, limit?.burst ?? null],
      );
    },
    async setTenantMode(tenant, mode) {
      await query(
        `insert into posthorn.tenants (id, validation) values ($1, $2)
             on conflict (id) do update set validation = $2`,
        [tenant, mode],
      );
    },
    async agePeer(id, ms) {
      await query('update posthorn.peers set seen_at = seen_at - make_interval(secs => $2) where id = $1', [
        id,
        ms / 1000,
      ]);
    },
    async createTask({ kind, selection }) {
      const id = newId();
      await query(
        `insert into posthorn.tasks (id, kind, selection, tenant, total, created_by) values ($1, $2, $3, $4, 0, 'test')`,
        [id, kind, { ...EVERYTHING, ...selection }, selection.tenant ?? null],
      );
      return id;
    },
    async cancelTask(id) {
      await query(
        `update posthorn.tasks set state = 'cancelled', runner = null, finished_at = now() where id = $1`,
        [id],
      );
    },
    async ageKafkaConsumer(id, ms) {
      await query(
        `update posthorn.kafka_consumers set renewed_at = renewed_at - make_interval(secs => $2)
          where id = coalesce($1::uuid, id)`,
        [id, ms / 1000],
      );
    },
    async ageWorker(workerId, ms) {
      await query(
        'update posthorn.workers set renewed_at = renewed_at - make_interval(secs => $2) where id = $1',
        [workerId, ms / 1000],
      );
    },
    async forgetRenewal(workerId) {
      await query('update posthorn.workers set renewals = renewals - 1 where id = $1', [workerId]);
    },
    // The clock of the server cannot be set, so the stored times move instead.
    async stepClockBack(ms) {
      const later = `+ make_interval(secs => ${ms / 1000})`;
      await query(
        `with w as (update posthorn.workers set renewed_at = renewed_at ${later}),
              s as (update posthorn.shards set taken_at = taken_at ${later},
                           unclean_at = array(select u ${later} from unnest(unclean_at) u))
         update posthorn.tasks set created_at = created_at ${later}, updated_at = updated_at ${later},
                heartbeat_at = heartbeat_at ${later}`,
      );
    },
    async breakSession(workerId) {
      await query(
        `select pg_terminate_backend(l.pid, 5000) from posthorn.workers w join pg_locks l
             on l.locktype = 'advisory' and ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key
          where w.id = $1`,
        [workerId],
      );
    },
  };
}
