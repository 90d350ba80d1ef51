import { systemClock } from '../../../src/domain/clock.ts';
import { resolveEndpoint } from '../../../src/domain/endpoint-config.ts';
import type { Uuid } from '../../../src/domain/ids.ts';
import { type Fault, Link, withFaults } from '../../../src/memory/faults.ts';
import { createMemoryCatalogueStore } from '../../../src/memory/memory-catalogue-store.ts';
import { createMemoryConversionStore } from '../../../src/memory/memory-conversion-store.ts';
import { createMemoryDeliveryQueue } from '../../../src/memory/memory-delivery-queue.ts';
import {
  createMemoryEndpointSource,
  MemoryEndpointDirectory,
} from '../../../src/memory/memory-endpoint-directory.ts';
import { createMemoryEventLookup, createMemoryEventStore } from '../../../src/memory/memory-event-store.ts';
import { createMemoryFanOutStore } from '../../../src/memory/memory-fan-out-store.ts';
import { createMemoryKafkaStore } from '../../../src/memory/memory-kafka-store.ts';
import { createMemoryKeyClaims } from '../../../src/memory/memory-key-claims.ts';
import { createMemoryOutboxStore } from '../../../src/memory/memory-outbox-store.ts';
import { createMemoryOwnershipStore } from '../../../src/memory/memory-ownership-store.ts';
import { MemoryPeerDirectory } from '../../../src/memory/memory-peer-directory.ts';
import { MemoryStore } from '../../../src/memory/memory-store.ts';
import { createMemoryTaskStore } from '../../../src/memory/memory-task-store.ts';
import { createMemoryTenantLimits } from '../../../src/memory/memory-tenant-limits.ts';
import type { TaskRow } from '../../../src/memory/rows.ts';
import {
  type DeliveryState,
  EVERYTHING,
  type NewTask,
  type StoreFixture,
  type StorePorts,
  type UnreliableStore,
} from './fixture.ts';
import { endpointIdOf, newId } from './ids.ts';

type Schema = Parameters<StoreFixture['putSchema']>[2];

/** A clock that returns a later time at every call, like that of PostgreSQL. */
function createStoreClock() {
  let last = 0;
  let behindMs = 0;
  return {
    now: () => {
      last = Math.max(last + 0.001, Date.now() - behindMs);
      return last;
    },
    after: systemClock.after,
    stepBack: (ms: number): void => {
      behindMs += ms;
      last -= ms;
    },
    reset: (): void => {
      behindMs = 0;
    },
  };
}

export async function createMemoryFixture(): Promise<StoreFixture> {
  const clock = createStoreClock();
  const store = new MemoryStore({ clock });
  const peers = new MemoryPeerDirectory(clock);
  const ports = {
    eventStore: createMemoryEventStore(store),
    eventLookup: createMemoryEventLookup(store),
    queue: createMemoryDeliveryQueue(store),
    outbox: createMemoryOutboxStore(store),
    fanOuts: createMemoryFanOutStore(store),
    conversions: createMemoryConversionStore(store),
    tasks: createMemoryTaskStore(store),
    peers,
    tenantLimits: createMemoryTenantLimits(store),
    catalogue: createMemoryCatalogueStore(store),
    kafka: createMemoryKafkaStore(store),
    claims: createMemoryKeyClaims(store),
  };
  return {
    ...ports,
    ...createInspection(store),
    ...createAdministration(store),
    unreliable: createUnreliable(ports),
    async agePeer(id, ms) {
      peers.peers.get(id)!.seenAt -= ms;
    },
    createOwnership: () => createMemoryOwnershipStore({ store, announceFreeShards: () => {} }),
    createDirectory: () => new MemoryEndpointDirectory(createMemoryEndpointSource(store)),
    stepClockBack: async (ms) => clock.stepBack(ms),
    clear: async () => {
      clear(store);
      peers.peers.clear();
      clock.reset();
    },
    close: async () => {},
  };
}

function clear(store: MemoryStore): void {
  for (const row of store.queue.all()) store.queue.delete(row);
  const { events, finished, deadLetters, attempts, health, endpointNotes, idempotencyKeys } = store;
  const tables = [events, finished, deadLetters, attempts, health, endpointNotes, idempotencyKeys];
  for (const table of [
    ...tables,
    store.workers,
    store.outbox,
    store.tasks,
    store.fanOutSlices,
    store.conversions,
    store.tenantLimits,
    store.tenantModes,
    store.eventTypes,
    store.schemaFailures,
  ])
    table.clear();
  store.rejectedOutbox.length = 0;
  store.kafka.clear();
  for (const shard of store.shards) Object.assign(shard, { owner: null, takenAt: null, uncleanAt: [] });
}

function createUnreliable(ports: StorePorts): UnreliableStore {
  let next: Fault = 'none';
  const link = new Link({
    storeClock: systemClock,
    processClock: systemClock,
    latencyMs: () => 0,
    fault: () => {
      const fault = next;
      next = 'none';
      return fault;
    },
  });
  const arm = async (fault: Fault): Promise<void> => {
    next = fault;
  };
  return {
    eventStore: withFaults(ports.eventStore, link),
    eventLookup: withFaults(ports.eventLookup, link),
    queue: withFaults(ports.queue, link),
    outbox: withFaults(ports.outbox, link),
    fanOuts: withFaults(ports.fanOuts, link),
    conversions: withFaults(ports.conversions, link),
    tasks: withFaults(ports.tasks, link),
    peers: withFaults(ports.peers, link),
    tenantLimits: withFaults(ports.tenantLimits, link),
    catalogue: withFaults(ports.catalogue, link),
    kafka: withFaults(ports.kafka, link),
    claims: withFaults(ports.claims, link),
    loseNextAnswer: () => arm('lost_answer'),
    loseNextRequest: () => arm('lost_request'),
  };
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

function createInspection(store: MemoryStore): Inspection {
  return {
    findDelivery: async (id) => findDelivery(store, id),
    attemptsOf: async (id) =>
      [...(store.attempts.get(id)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1)),
    endpointNoteIds: async () => [...store.endpointNotes.keys()],
    findTask: async (id) => ({ ...store.tasks.get(id)! }),
    hasTenant: async (name) => store.tenants.has(name),
    rejectedOutbox: async () => store.rejectedOutbox.map(({ id, reason }) => ({ id, reason })),
    outboxIds: async () => [...store.outbox.values()].map(({ id }) => id),
    async kafkaPosition(partitionId) {
      const { position, done } = store.kafka.partitions.find(({ id }) => id === partitionId)!;
      return { position: Number(position), done: done.map(Number) };
    },
    schemaFailureIds: async () => [...store.schemaFailures.keys()],
    endpointVersion: async () => store.endpointVersion,
  };
}

function findDelivery(store: MemoryStore, id: Uuid): DeliveryState | null {
  const waiting = store.queue.get(id);
  if (waiting !== undefined) {
    const { attempts, replays } = waiting;
    return { place: 'queue', status: 'waiting', reason: null, attempts, replays };
  }
  const dead = store.deadLetters.get(id);
  if (dead !== undefined) {
    const { reason, attempts, replays } = dead;
    return { place: 'dead_letters', status: 'dead', reason, attempts, replays };
  }
  const finished = store.finished.get(id);
  if (finished === undefined) return null;
  const { status, reason, attempts, replays } = finished;
  return { place: 'finished', status, reason, attempts, replays };
}

type Administration = Pick<
  StoreFixture,
  | 'createEndpoint'
  | 'changeRegion'
  | 'setEnabled'
  | 'deleteEndpoint'
  | 'publish'
  | 'expunge'
  | 'setTenantLimit'
  | 'setTenantMode'
  | 'putSchema'
  | 'createTask'
  | 'cancelTask'
  | 'ageKafkaConsumer'
  | 'ageWorker'
  | 'forgetRenewal'
  | 'breakSession'
>;

function createAdministration(store: MemoryStore): Administration {
  const change = (id: Uuid, part: Parameters<MemoryStore['putEndpoint']>[0] | object): void =>
    store.putEndpoint({ ...store.endpoints.get(id)!.endpoint, ...part });
  return {
    async createEndpoint({ config = {}, shard } = {}) {
      const id = endpointIdOf(shard);
      const state = { enabled: true, disabledReason: null, paused: false, deleted: false };
      const record = { id, tenant: 'acme', url: 'https://receiver.test/', config, ...state };
      store.putEndpoint(resolveEndpoint(record, []));
      return id;
    },
    changeRegion: async (id, region) => store.changeRegion(id, region),
    setEnabled: async (id, enabled) => change(id, { enabled, disabledReason: enabled ? null : 'manual' }),
    deleteEndpoint: async (id) => change(id, { deleted: true }),
    async publish(row, ageMs = 0) {
      store.publish(row);
      const stored = [...store.outbox.values()].at(-1)!;
      store.outbox.set(Number(stored.seq), { ...stored, createdAt: stored.createdAt - ageMs });
    },
    async expunge(eventId) {
      store.events.delete(eventId);
      store.expungedEvents.add(eventId);
      for (const [name, stored] of store.conversions)
        if (stored.eventId === eventId) store.conversions.delete(name);
    },
    async setTenantLimit(tenant, limit) {
      if (limit === null) store.tenantLimits.delete(tenant);
      else store.tenantLimits.set(tenant, limit);
    },
    async setTenantMode(tenant, mode) {
      if (mode === 'off') store.tenantModes.delete(tenant);
      else store.tenantModes.set(tenant, mode);
    },
    putSchema: async (eventType, version, schema) => putSchema(store, eventType, version, schema),
    createTask: async (task) => createTask(store, task),
    cancelTask: async (id) => void Object.assign(store.tasks.get(id)!, { state: 'cancelled', runner: null }),
    async ageKafkaConsumer(id, ms) {
      for (const [each, row] of store.kafka.consumers) if (id === null || id === each) row.renewedAt -= ms;
    },
    async ageWorker(workerId, ms) {
      store.workers.get(workerId)!.renewedAt -= ms;
    },
    async forgetRenewal(workerId) {
      store.workers.get(workerId)!.renewals -= 1;
    },
    breakSession: async (workerId) => store.breakSession(workerId),
  };
}

function putSchema(store: MemoryStore, name: string, version: string | null, schema: Schema): void {
  const revision = String(store.now());
  const time = { deprecatedAt: null, sunsetAt: null, revision };
  const type = store.eventTypes.get(name) ?? {
    ...{ name, validation: null, versions: [], schema: null, schemas: new Map() },
    ...time,
  };
  if (version === null) {
    store.eventTypes.set(name, { ...type, schema, revision });
    return;
  }
  const known = type.versions.find((each) => each.version === version);
  const versions = known
    ? type.versions.map((each) => (each === known ? { ...each, revision } : each))
    : [...type.versions, { version, status: 'active' as const, createdAt: store.now(), ...time }];
  const schemas = new Map(type.schemas);
  if (schema === null) schemas.delete(version);
  else schemas.set(version, schema);
  store.eventTypes.set(name, { ...type, versions, schemas });
}

function createTask(store: MemoryStore, { kind, selection }: NewTask): Uuid {
  const now = store.now();
  const task: TaskRow = {
    id: newId(),
    kind,
    selection: { ...EVERYTHING, ...selection },
    createdBy: 'test',
    createdAt: now,
    state: 'queued',
    total: 0,
    done: 0,
    failed: 0,
    cursor: null,
    runner: null,
    wasClaimed: false,
    heartbeatAt: null,
    updatedAt: now,
    error: null,
  };
  store.tasks.set(task.id, task);
  return task.id;
}
