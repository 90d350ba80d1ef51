/**
 * Everything that a caller can change, by resource. Each class owns the transaction, the rules and the audit entry of
 * its resource; the HTTP API only translates requests into these calls and their results into answers.
 */
import type { EgressPolicy } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import type { ApiKeyFormat } from './api-keys.ts';
import { Archive } from './archive.ts';
import { DeadLetters } from './dead-letters.ts';
import { type ChallengeOptions, EndpointChallenges } from './endpoint-challenges.ts';
import type { EndpointLimits } from './endpoint-limits.ts';
import { EndpointSecrets } from './endpoint-secrets.ts';
import { Endpoints } from './endpoints.ts';
import { EventTypeVersions } from './event-type-versions.ts';
import { EventTypes } from './event-types.ts';
import { Expunge } from './expunge.ts';
import { KafkaRecords } from './kafka-records.ts';
import { Keys } from './keys.ts';
import { type NotifierOptions, Notifiers } from './notifiers.ts';
import { PortalSessions } from './portal-sessions.ts';
import { Probes } from './probes.ts';
import { Replay } from './replay.ts';
import { Tasks } from './tasks.ts';
import { Tenants } from './tenants.ts';
import { TestEvents } from './test-events.ts';

export interface ControlPlaneDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly secretBox: SecretBox;
  readonly keyFormat: ApiKeyFormat;
  /** Which URLs Posthorn may call. */
  readonly egress: EgressPolicy;
  readonly challenges: ChallengeOptions;
  readonly endpointLimits: EndpointLimits;
  /** How many tasks of a tenant may be queued or running. */
  readonly maxTasksPerTenant: number;
  readonly notifiers: NotifierOptions;
  /** The tenant whose endpoints may get the operational events of all tenants. Only admin keys may use it. */
  readonly operatorTenant: string;
  /** How long the previous signing secret signs beside a new one. */
  readonly signatureOverlapMs: number;
  /** How long a discard can be undone. */
  readonly discardUndoMs: number;
  /** How many days events are kept. 0: forever. */
  readonly retentionDays: number;
  /** Whether expired data is archived. */
  readonly hasArchive: boolean;
  /** How long the lease of a worker lasts. */
  readonly leaseMs: number;
  /** How long Kafka may hold a record, in milliseconds. Null: Kafka is not configured. */
  readonly readKafkaLifetime: (() => Promise<number>) | null;
  readonly onKafkaProblem: (error: unknown) => void;
  /** A delivery of this endpoint became due or unblocked: wakes the worker that owns it. */
  readonly wake: (endpointId: Uuid) => void;
  /** A key was changed or revoked: drop it from the cache of this process. */
  readonly onKeyChanged: () => void;
  /** The catalogue was changed: makes this process read it again. */
  readonly onCatalogueChanged: () => Promise<void>;
  /** A probe was requested: tells the worker that owns its endpoint. */
  readonly wakeProbe: () => void;
}

export interface ControlPlane {
  readonly endpoints: Endpoints;
  readonly endpointSecrets: EndpointSecrets;
  readonly testEvents: TestEvents;
  readonly probes: Probes;
  readonly replay: Replay;
  readonly deadLetters: DeadLetters;
  readonly tasks: Tasks;
  readonly keys: Keys;
  readonly portalSessions: PortalSessions;
  readonly tenants: Tenants;
  readonly eventTypes: EventTypes;
  readonly eventTypeVersions: EventTypeVersions;
  readonly expunge: Expunge;
  readonly archive: Archive;
  readonly kafkaRecords: KafkaRecords;
  readonly notifiers: Notifiers;
}

export function createControlPlane(dependencies: ControlPlaneDependencies): ControlPlane {
  const challenges = new EndpointChallenges(dependencies.challenges);
  const tasks = new Tasks(dependencies);
  const testEvents = new TestEvents(dependencies);
  return {
    endpoints: new Endpoints({ ...dependencies, challenges }),
    endpointSecrets: new EndpointSecrets(dependencies),
    testEvents,
    probes: new Probes(dependencies),
    replay: new Replay({ ...dependencies, tasks }),
    deadLetters: new DeadLetters({ ...dependencies, tasks }),
    tasks,
    keys: new Keys(dependencies),
    portalSessions: new PortalSessions(dependencies),
    tenants: new Tenants(dependencies),
    eventTypes: new EventTypes(dependencies),
    eventTypeVersions: new EventTypeVersions(dependencies),
    expunge: new Expunge(dependencies),
    archive: new Archive(dependencies),
    kafkaRecords: new KafkaRecords(dependencies),
    notifiers: new Notifiers({ ...dependencies, testEvents }),
  };
}
