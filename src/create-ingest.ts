/** Composes the accept stage. The server, the relay and the simulation all use this function. */
import type { EventCatalogue } from './catalogue/event-catalogue.ts';
import type { Config } from './config/index.ts';
import type { BatcherOptions } from './domain/batcher.ts';
import type { Clock } from './domain/clock.ts';
import type { ProcessLoad } from './domain/load-meter.ts';
import { LocalBuckets } from './domain/local-buckets.ts';
import {
  type AcceptObserverOptions,
  AcceptObservers,
  Acceptor,
  Admission,
  BACKGROUND_FACTOR,
  BatchWriter,
  CommitPace,
  CommittedEvents,
  FanOutLimit,
  FanOutWriter,
  KnownTenants,
  LoadShedder,
  LogQueue,
  SchemaCheck,
  type SchemaFailureMetrics,
  SchemaFailures,
  StoreQueue,
  Subscriptions,
  sliceRowsOf,
  TenantRates,
  UnwrittenWatch,
} from './ingest/index.ts';
import type { CatalogueStore } from './ports/catalogue-store.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { ClosedTenants, EventLog, KeyClaims } from './ports/event-log.ts';
import type { EventLookup, EventStore } from './ports/event-store.ts';
import type { FanOutStore } from './ports/fan-out-store.ts';
import type { RateBuckets, RateLimits, TenantLimits } from './ports/rate-limits.ts';
import type { DeliveryRouter } from './ports/stages.ts';

export interface IngestPorts {
  readonly eventStore: EventStore;
  readonly eventLookup: EventLookup;
  /** Where published events wait before they are stored. Absent: they are stored at once. */
  readonly eventLog?: LogPorts | undefined;
  readonly fanOuts: FanOutStore;
  readonly endpoints: EndpointDirectory;
  readonly tenantLimits: TenantLimits;
  /** Default: each process counts for itself. */
  readonly rateBuckets?: RateBuckets;
  /** Which payloads are checked against which schema. */
  readonly catalogue: EventCatalogue;
  readonly catalogueStore: Pick<CatalogueStore, 'recordFailures'>;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface LogPorts {
  readonly log: EventLog;
  readonly claims: KeyClaims;
  readonly closedTenants: ClosedTenants;
}

export interface IngestStages {
  /** Gets the deliveries of every commit. */
  readonly router: DeliveryRouter;
  readonly observers?: AcceptObserverOptions | undefined;
  readonly schemaMetrics?: SchemaFailureMetrics | undefined;
  /** Called after each batch of requests, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
  /** True if no event was accepted for half a minute. Absent: unknown. */
  readonly isStoreQuiet?: (() => boolean) | undefined;
  /** Returns the load of the processes of this node that deliver. */
  readonly deliveryLoad?: (() => ProcessLoad) | undefined;
  readonly onProblem: (what: string, error: unknown) => void;
}

export type IngestConfig = Pick<
  Config,
  | 'ingestBatchRows'
  | 'ingestBatchBytes'
  | 'acceptQueueEvents'
  | 'acceptQueueBytes'
  | 'shedLoopDelayMs'
  | 'shedCommitMs'
  | 'idempotencyTtlMs'
  | 'tenantIngestPerSecond'
  | 'tenantIngestBurst'
  | 'tenantUnwrittenDeliveries'
> & { readonly deliveriesPerCommit?: number };

export interface Ingest {
  /** Accepts events from requests. */
  readonly acceptor: Acceptor;
  /** Accepts events from the outbox, from a relay and from Kafka. */
  readonly committedEvents: CommittedEvents;
  /** Writes the deliveries of large fan-outs, also of events that other processes accepted. */
  readonly fanOutWriter: FanOutWriter;
  /** Rejects a part of the requests while the node or the database is slow, once it is started. */
  readonly shedder: LoadShedder;
  readonly subscriptionLookups: Subscriptions['lookups'];
  /** How fast each tenant may publish. The limits apply to Kafka records too. */
  readonly tenantRates: RateLimits;
  reloadTenantLimits(): Promise<void>;
  /** Call this when a tenant was changed or deleted. */
  onTenantsChanged(): Promise<void>;
}

/** While the store does not answer, a request waits this long for it. */
const GIVE_UP_AFTER_MS = 10_000;

const DELIVERIES_PER_COMMIT = 1_000;

export function createIngest(ports: IngestPorts, stages: IngestStages, config: IngestConfig): Ingest {
  const { eventStore, fanOuts, endpoints, clock, random } = ports;
  const { deliveriesPerCommit = DELIVERIES_PER_COMMIT } = config;

  const subscriptions = followSubscriptions(endpoints);
  const knownTenants = new KnownTenants(eventStore);
  endpoints.onReplaced(() => knownTenants.clear());
  const tenantRates = createTenantRates(ports, config);
  const shedder = new LoadShedder({
    clock,
    maxLoopDelayMs: config.shedLoopDelayMs,
    maxCommitMs: config.shedCommitMs,
    deliveryLoad: stages.deliveryLoad,
  });
  const admission = new Admission({
    shedder,
    clock,
    endpoints,
    subscriptions,
    tenantRates,
    queueEvents: config.acceptQueueEvents,
    queueBytes: config.acceptQueueBytes,
  });
  const slicePace = new CommitPace({ clock, factor: BACKGROUND_FACTOR });
  const fanOutWriter = new FanOutWriter({
    ...ports,
    router: stages.router,
    pace: slicePace,
    sliceRows: sliceRowsOf(deliveriesPerCommit),
    isStoreQuiet: stages.isStoreQuiet ?? (() => false),
    onProblem: stages.onProblem,
  });
  const observers = new AcceptObservers(stages.observers ?? {});
  const writer = new BatchWriter({
    eventStore,
    endpoints,
    subscriptions,
    knownTenants,
    router: stages.router,
    fanOutLimit: new FanOutLimit({
      fanOuts,
      eventStore,
      deliveriesPerCommit,
      sliceRows: sliceRowsOf(deliveriesPerCommit),
      maxUnwritten: config.tenantUnwrittenDeliveries,
    }),
    observers,
    clock,
    random,
    idempotencyTtlMs: config.idempotencyTtlMs,
    giveUpAfterMs: GIVE_UP_AFTER_MS,
    deliveriesPerCommit,
    onSliced: () => fanOutWriter.runSoon(),
  });

  const schemas = createSchemaCheck(ports, stages);

  const onSharedBatch = (): void => slicePace.onSharedBatch();
  const parts = { writer, subscriptions, observers, shedder, onSharedBatch };
  const queue = createQueue(ports, stages, config, parts);
  const reloadTenants = async (): Promise<void> => {
    await tenantRates.reload();
    if (queue instanceof LogQueue) await queue.reloadClosedTenants();
  };
  return {
    acceptor: new Acceptor({ admission, schemas, queue, clock }),
    committedEvents: new CommittedEvents({ eventStore, writer, clock, schemas }),
    fanOutWriter,
    shedder,
    subscriptionLookups: subscriptions.lookups,
    tenantRates,
    reloadTenantLimits: reloadTenants,
    onTenantsChanged() {
      knownTenants.clear();
      return reloadTenants();
    },
  };
}

interface QueueParts {
  readonly writer: BatchWriter;
  readonly subscriptions: Subscriptions;
  readonly observers: AcceptObservers;
  readonly shedder: LoadShedder;
  readonly onSharedBatch: () => void;
}

function createQueue(
  { eventLog, fanOuts, clock }: IngestPorts,
  stages: IngestStages,
  config: IngestConfig,
  { writer, subscriptions, observers, shedder, onSharedBatch }: QueueParts,
): StoreQueue | LogQueue {
  const batches = {
    clock,
    batchRows: config.ingestBatchRows,
    batchBytes: config.ingestBatchBytes,
    onBatchWritten(items: number, waitedMs: number, tookMs: number) {
      shedder.recordCommit(tookMs);
      stages.onBatchWritten?.(items, waitedMs, tookMs);
    },
  };
  if (eventLog === undefined) return new StoreQueue({ ...batches, writer, onSharedBatch });
  const { deliveriesPerCommit = DELIVERIES_PER_COMMIT } = config;
  return new LogQueue({
    ...batches,
    ...eventLog,
    subscriptions,
    observers,
    unwritten: new UnwrittenWatch({
      fanOuts,
      clock,
      deliveriesPerCommit,
      sliceRows: sliceRowsOf(deliveriesPerCommit),
      maxUnwritten: config.tenantUnwrittenDeliveries,
      onProblem: stages.onProblem,
    }),
    idempotencyTtlMs: config.idempotencyTtlMs,
    giveUpAfterMs: GIVE_UP_AFTER_MS,
  });
}

function createTenantRates({ tenantLimits, rateBuckets, clock }: IngestPorts, config: IngestConfig) {
  return new TenantRates({
    limits: tenantLimits,
    buckets: rateBuckets ?? new LocalBuckets(clock),
    clock,
    perSecond: config.tenantIngestPerSecond,
    burst: config.tenantIngestBurst,
  });
}

function followSubscriptions(endpoints: EndpointDirectory): Subscriptions {
  const subscriptions = new Subscriptions();
  subscriptions.update(endpoints.all());
  endpoints.onChange((changed) => subscriptions.update(changed));
  return subscriptions;
}

function createSchemaCheck({ catalogue, catalogueStore, clock }: IngestPorts, stages: IngestStages) {
  const failures = new SchemaFailures({
    store: catalogueStore,
    clock,
    metrics: stages.schemaMetrics,
    onProblem: stages.onProblem,
  });
  return { check: new SchemaCheck({ catalogue, failures, clock }), failures };
}
