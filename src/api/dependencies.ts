import type { EventCatalogue } from '../catalogue/event-catalogue.ts';
import type { Conversions } from '../convert/index.ts';
import type { Clock } from '../domain/clock.ts';
import type { ProblemCode } from '../domain/problem.ts';
import type { Acceptor, ReadLimits } from '../ingest/index.ts';
import type { ControlPlane } from '../manage/control-plane.ts';
import type { Inboxes } from '../manage/inboxes.ts';
import type { StorageReport } from '../manage/storage.ts';
import type { OutboxLag } from '../outbox/index.ts';
import type { Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import type { RegionStatus } from '../postgres/queries/regions.ts';
import type { RelaySource } from '../postgres/queries/relay-sources.ts';
import type { LiveTail } from '../telemetry/live-tail/index.ts';
import type { Log } from '../telemetry/log.ts';
import type { UnstoredEvents } from './events/unstored-events.ts';
import type { Authenticator } from './http/authenticator.ts';
import type { IsTrustedProxy } from './http/client-address.ts';
import type { IdempotencyOptions } from './http/idempotent-requests.ts';
import type { SignInDependencies } from './sign-in/routes.ts';

/** What the API needs of the rest of Posthorn. */
export interface ApiDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Null: metrics are switched off. */
  readonly metrics: ApiMetrics | null;
  /** The base URL of this server for its clients. With port 0 it is known only when the server listens. */
  readonly publicUrl: string;

  /** For reads. Changes go through `manage`. */
  readonly pool: Pool;
  readonly endpoints: EndpointCache;
  readonly manage: ControlPlane;
  readonly conversions: Pick<Conversions, 'preview' | 'tryConversion'>;
  readonly catalogue: Pick<EventCatalogue, 'versionsOf' | 'schemaOf'>;

  readonly access: AccessDependencies;
  readonly publishing: PublishingDependencies;
  /** `Idempotency-Key` of requests other than publishing. */
  readonly idempotency: IdempotencyOptions;
  readonly liveTail: LiveTailDependencies;
  readonly readStorage: () => Promise<StorageReport>;
  /** The Kafka topics that are read. */
  readonly kafkaTopics: readonly string[];
  /** Null: every accepted event is in the database. */
  readonly unstoredEvents: UnstoredEvents | null;
  /** How long statistics are cached. */
  readonly statsCacheMs: number;
  /** How long statistics by the minute are kept. */
  readonly statsMinutesMs: number;
  /** Origins of the pages that may show the console in a frame. */
  readonly portalOrigins: readonly string[];
  /** Null: there is no built-in receiver. */
  readonly inboxes: Inboxes | null;
  readonly health: HealthDependencies;
}

export interface ApiMetrics {
  onRejected(code: ProblemCode): void;
  /** Connections were closed because their clients did not read the answer. */
  onUnreadClosed(count: number): void;
  /** The metrics of all processes of this node. */
  text(): Promise<string>;
}

/** Who makes a request. */
export interface AccessDependencies {
  readonly authenticator: Authenticator;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly metricsAccess: MetricsAccess;
  /** Null: people sign in to the console with keys only. */
  readonly signIn: SignInDependencies | null;
}

/** `auto`: requests that come directly from this machine need no key. `key`: every request does. `open`: none does. */
export type MetricsAccess = 'auto' | 'key' | 'open';

export interface PublishingDependencies {
  readonly acceptor: Pick<Acceptor, 'accept'>;
  readonly limits: PublishLimits;
}

export interface PublishLimits extends ReadLimits {
  readonly maxBatchBytes: number;
}

export interface LiveTailDependencies {
  readonly tail: Pick<LiveTail, 'join' | 'leave'>;
  readonly limits: StreamLimits;
}

export interface StreamLimits {
  readonly clients: number;
  readonly clientsPerKey: number;
  /** How many the keys and users of one tenant may have together, so that a tenant with many keys leaves some to others. */
  readonly clientsPerTenant: number;
  readonly bufferBytes: number;
  readonly heartbeatMs: number;
}

export interface HealthDependencies {
  /** Resolves with what is missing, or null if the server is ready. */
  readonly findMissing: () => Promise<string | null>;
  readonly outboxLag: () => Promise<OutboxLag>;
  readonly relaySources: () => Promise<RelaySource[]>;
  readonly regions: () => Promise<RegionStatus[]>;
}
