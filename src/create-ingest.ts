/** Composes the accept stage. The server, the relay and the simulation all use this function. */
import type { EventCatalogue } from './catalogue/event-catalogue.ts';
import type { Config } from './config/index.ts';
import type { BatcherOptions } from './domain/batcher.ts';
import type { Clock } from './domain/clock.ts';
import {
  type AcceptObserverOptions,
  AcceptObservers,
  Acceptor,
  Admission,
  BatchWriter,
  CommittedEvents,
  FanOutWriter,
  KnownTenants,
  SchemaCheck,
  type SchemaFailureMetrics,
  SchemaFailures,
  Subscriptions,
  sliceRowsOf,
  TenantRates,
} from './ingest/index.ts';
import type { AcceptLog, EventLookup } from './ports/accept-log.ts';
import type { CatalogueStore } from './ports/catalogue-store.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { FanOutStore } from './ports/fan-out-store.ts';
import type { TenantLimits } from './ports/rate-limits.ts';
import type { DeliveryRouter } from './ports/stages.ts';

export interface IngestPorts {
  readonly acceptLog: AcceptLog;
  readonly eventLookup: EventLookup;
  readonly fanOuts: FanOutStore;
  readonly endpoints: EndpointDirectory;
  readonly tenantLimits: TenantLimits;
  /** Which payloads are checked against which schema. */
  readonly catalogue: EventCatalogue;
  readonly catalogueStore: Pick<CatalogueStore, 'recordFailures'>;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface IngestStages {
  /** Gets the deliveries of every commit. */
  readonly router: DeliveryRouter;
  readonly observers?: AcceptObserverOptions | undefined;
  readonly schemaMetrics?: SchemaFailureMetrics | undefined;
  /** Called after each batch of requests, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
  readonly onProblem: (what: string, error: unknown) => void;
}

export type IngestConfig = Pick<
  Config,
  | 'ingestBatchRows'
  | 'ingestBatchBytes'
  | 'acceptQueueEvents'
  | 'acceptQueueBytes'
  | 'idempotencyTtlMs'
  | 'tenantIngestPerSecond'
  | 'tenantIngestBurst'
> & { readonly deliveriesPerCommit?: number };

export interface Ingest {
  /** Accepts events from requests. */
  readonly acceptor: Acceptor;
  /** Accepts events from the outbox and from a relay. */
  readonly committedEvents: CommittedEvents;
  /** Writes the deliveries of large fan-outs, also of events that other processes accepted. */
  readonly fanOutWriter: FanOutWriter;
  readonly subscriptionLookups: Subscriptions['lookups'];
  reloadTenantLimits(): Promise<void>;
  /** Call this when a tenant was changed or deleted. */
  onTenantsChanged(): Promise<void>;
}

/** While the store does not answer, a request waits this long for it. */
const GIVE_UP_AFTER_MS = 10_000;

const DELIVERIES_PER_COMMIT = 2_000;

export function createIngest(ports: IngestPorts, stages: IngestStages, config: IngestConfig): Ingest {
  const { acceptLog, eventLookup, fanOuts, endpoints, tenantLimits, clock, random } = ports;
  const { deliveriesPerCommit = DELIVERIES_PER_COMMIT } = config;

  const subscriptions = new Subscriptions();
  subscriptions.update(endpoints.all());
  endpoints.onChange((changed) => subscriptions.update(changed));

  const knownTenants = new KnownTenants(acceptLog);
  endpoints.onReplaced(() => knownTenants.clear());
  const tenantRates = new TenantRates({
    limits: tenantLimits,
    clock,
    perSecond: config.tenantIngestPerSecond,
    burst: config.tenantIngestBurst,
  });

  const admission = new Admission({
    clock,
    endpoints,
    subscriptions,
    tenantRates,
    queueEvents: config.acceptQueueEvents,
    queueBytes: config.acceptQueueBytes,
  });
  const fanOutWriter = new FanOutWriter({
    fanOuts,
    eventLookup,
    acceptLog,
    endpoints,
    router: stages.router,
    clock,
    random,
    sliceRows: sliceRowsOf(deliveriesPerCommit),
    onProblem: stages.onProblem,
  });
  const writer = new BatchWriter({
    acceptLog,
    endpoints,
    subscriptions,
    knownTenants,
    router: stages.router,
    observers: new AcceptObservers(stages.observers ?? {}),
    clock,
    random,
    idempotencyTtlMs: config.idempotencyTtlMs,
    giveUpAfterMs: GIVE_UP_AFTER_MS,
    deliveriesPerCommit,
    onSliced: () => fanOutWriter.runSoon(),
  });

  const failures = new SchemaFailures({
    store: ports.catalogueStore,
    clock,
    metrics: stages.schemaMetrics,
    onProblem: stages.onProblem,
  });
  const schemas = { check: new SchemaCheck({ catalogue: ports.catalogue, failures }), failures };

  return {
    acceptor: new Acceptor({
      admission,
      schemas,
      writer,
      clock,
      batchRows: config.ingestBatchRows,
      batchBytes: config.ingestBatchBytes,
      onBatchWritten: stages.onBatchWritten,
    }),
    committedEvents: new CommittedEvents({ acceptLog, writer, clock, schemas }),
    fanOutWriter,
    subscriptionLookups: subscriptions.lookups,
    reloadTenantLimits: () => tenantRates.reload(),
    onTenantsChanged() {
      knownTenants.clear();
      return tenantRates.reload();
    },
  };
}
