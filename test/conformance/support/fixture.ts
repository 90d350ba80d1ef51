/**
 * What the conformance suites need of an implementation: its ports, ways to create what the ports do not create
 * (endpoints, outbox rows, tasks), and ways to inspect the stored state. One fixture is one store.
 */

import type { RateLimit } from '../../../src/domain/endpoint.ts';
import type { EndpointConfig } from '../../../src/domain/endpoint-config.ts';
import type { ValidationMode } from '../../../src/domain/event-type-version.ts';
import type { Uuid } from '../../../src/domain/ids.ts';
import type { TaskSelection } from '../../../src/memory/rows.ts';
import type { CatalogueStore } from '../../../src/ports/catalogue-store.ts';
import type { ConversionStore } from '../../../src/ports/conversion-store.ts';
import type { DeliveryQueue } from '../../../src/ports/delivery-queue.ts';
import type { EndpointDirectory } from '../../../src/ports/endpoint-directory.ts';
import type { KeyClaims } from '../../../src/ports/event-log.ts';
import type { EventLookup, EventStore } from '../../../src/ports/event-store.ts';
import type { FanOutStore } from '../../../src/ports/fan-out-store.ts';
import type { KafkaStore } from '../../../src/ports/kafka-store.ts';
import type { OutboxRow, OutboxStore } from '../../../src/ports/outbox-store.ts';
import type { OwnershipStore } from '../../../src/ports/ownership-store.ts';
import type { PeerDirectory } from '../../../src/ports/peer-directory.ts';
import type { TenantLimits } from '../../../src/ports/rate-limits.ts';
import type { TaskStore } from '../../../src/ports/task-store.ts';

export interface StorePorts {
  readonly eventStore: EventStore;
  readonly eventLookup: EventLookup;
  readonly queue: DeliveryQueue;
  readonly outbox: OutboxStore;
  readonly fanOuts: FanOutStore;
  readonly conversions: ConversionStore;
  readonly tasks: TaskStore;
  readonly peers: PeerDirectory;
  readonly tenantLimits: TenantLimits;
  readonly catalogue: CatalogueStore;
  readonly kafka: KafkaStore;
  readonly claims: KeyClaims;
}

/** The same store over a connection that breaks when a test says so. */
export interface UnreliableStore extends StorePorts {
  /** Makes the next call take effect, but lose its answer. */
  loseNextAnswer(): Promise<void>;
  /** Makes the next call fail before it takes effect. */
  loseNextRequest(): Promise<void>;
}

export interface DeliveryState {
  readonly place: 'queue' | 'dead_letters' | 'finished';
  readonly status: 'waiting' | 'dead' | 'delivered' | 'skipped' | 'discarded';
  readonly reason: string | null;
  readonly attempts: number;
  readonly replays: number;
}

export interface LoggedAttempt {
  readonly id: Uuid;
  readonly number: number;
  readonly outcome: string;
  readonly worker: string;
  readonly trigger: string;
  readonly statusCode: number | null;
  readonly errorMessage: string | null;
  /** JSON text. */
  readonly responseHeaders: string | null;
  readonly responseBody: Buffer | null;
}

export interface NewTask {
  readonly kind: 'replay' | 'discard';
  readonly selection: Partial<TaskSelection>;
}

export interface TaskState {
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly error: string | null;
}

export interface StoreFixture extends StorePorts {
  readonly unreliable: UnreliableStore;
  /** Creates an ownership store as a separate process has it, with its own connection. */
  createOwnership(): OwnershipStore;
  createDirectory(): EndpointDirectory;

  createEndpoint(options?: { config?: EndpointConfig; shard?: number }): Promise<Uuid>;
  /** Changes the region that the endpoint names. Null: the default region. */
  changeRegion(endpointId: Uuid, region: string | null): Promise<void>;
  setEnabled(endpointId: Uuid, enabled: boolean): Promise<void>;
  deleteEndpoint(endpointId: Uuid): Promise<void>;
  endpointVersion(): Promise<number>;
  /** Commits a row to the outbox that was created `ageMs` ago. */
  publish(row: Omit<OutboxRow, 'seq'>, ageMs?: number): Promise<void>;
  /** Deletes the payload of an event, and what was derived from it. */
  expunge(eventId: Uuid): Promise<void>;
  createTask(task: NewTask): Promise<Uuid>;
  cancelTask(id: Uuid): Promise<void>;

  /** Gives a tenant a publish limit of its own. Null: the default limit. */
  setTenantLimit(tenant: string, limit: RateLimit | null): Promise<void>;
  setTenantMode(tenant: string, mode: ValidationMode): Promise<void>;
  /** Creates or replaces an event type, or (`version`) a version of it. */
  putSchema(
    eventType: string,
    version: string | null,
    schema: Record<string, unknown> | boolean | null,
  ): Promise<void>;
  schemaFailureIds(): Promise<Uuid[]>;
  /** Moves the last announcement of a process `ms` into the past. */
  agePeer(id: Uuid, ms: number): Promise<void>;
  /** Moves the last renewal of a reader of Kafka `ms` into the past. Null: of all. */
  ageKafkaConsumer(id: Uuid | null, ms: number): Promise<void>;
  /** Moves the last renewal of a worker `ms` into the past. */
  ageWorker(workerId: Uuid, ms: number): Promise<void>;
  /** The store is set back to before the last renewal of the worker. */
  forgetRenewal(workerId: Uuid): Promise<void>;
  /** The store's clock goes back by this much. Everything stored so far has a time in the future then. */
  stepClockBack(ms: number): Promise<void>;
  /** Breaks the connection that holds a worker's session lock. */
  breakSession(workerId: Uuid): Promise<void>;

  findDelivery(id: Uuid): Promise<DeliveryState | null>;
  attemptsOf(deliveryId: Uuid): Promise<LoggedAttempt[]>;
  endpointNoteIds(): Promise<Uuid[]>;
  findTask(id: Uuid): Promise<TaskState>;
  hasTenant(name: string): Promise<boolean>;
  rejectedOutbox(): Promise<{ id: Uuid; reason: string }[]>;
  outboxIds(): Promise<Uuid[]>;
  /** How far a Kafka partition is stored, and the offsets above that are stored already. */
  kafkaPosition(partitionId: number): Promise<{ position: number; done: number[] }>;
  /** Removes everything that the tests so far have stored, except endpoints. Closes their sessions. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export type CreateStoreFixture = () => Promise<StoreFixture>;

export const EVERYTHING: TaskSelection = {
  tenant: null,
  endpointId: null,
  statuses: ['dead'],
  type: null,
  reason: null,
  since: null,
  until: null,
  ids: null,
};
