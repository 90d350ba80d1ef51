/** Composes the background work: statistics, upkeep, operational events, tasks, archive, outbox and Kafka. */
import type { AppMetrics } from './app-metrics.ts';
import { ArchiveRuns } from './archive-runs.ts';
import { type Config, retentionOf } from './config/index.ts';
import type { Engine } from './create-engine.ts';
import type { Ingest } from './create-ingest.ts';
import { createKafkaSource } from './create-kafka-source.ts';
import type { DatabaseClock } from './domain/clock.ts';
import type { DisabledReason } from './domain/endpoint.ts';
import { newId, publicId, type Uuid } from './domain/ids.ts';
import type { Service } from './domain/lifecycle.ts';
import type { KafkaSource } from './kafka/index.ts';
import type { Store } from './open-store.ts';
import { Drainer } from './outbox/index.ts';
import type { Notifier } from './ports/notifier.ts';
import { TaskRunner } from './settle/index.ts';
import type { Log } from './telemetry/log.ts';
import { OperationalEvents, StatsKeeper, Upkeep } from './upkeep/index.ts';

export interface BackgroundOptions {
  readonly config: Config;
  readonly store: Store;
  readonly clock: DatabaseClock;
  readonly log: Log;
  readonly engine: Engine;
  readonly ingest: Ingest;
  /** Identifies the records of the accept topic that belong to this database. */
  readonly deployment: string;
  readonly notifier: Notifier;
  readonly metrics: AppMetrics | null;
  /** Changes when the server listens on a port that the system chose. */
  readonly address: { readonly publicUrl: string };
  /** The program that runs as the archive process. */
  readonly program?: string | undefined;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface Background {
  readonly stats: Service;
  readonly upkeep: Service;
  readonly operationalEvents: Service;
  /** Null in an API process. */
  readonly tasks: Service | null;
  readonly drainer: Service;
  /** Null: Kafka is not configured. */
  readonly kafka: KafkaSource | null;
  /** Null: there is no archive. */
  readonly archive: Service | null;
}

export function createBackground(options: BackgroundOptions): Background {
  const { config, store, clock, onProblem } = options;
  const archive = config.archiveUrl === null ? null : createArchiveRuns(options);
  return {
    stats: new StatsKeeper({
      store: store.statistics,
      clock,
      everyMs: config.statsFlushMs,
      typesPerTenant: config.statsTypesPerTenant,
      onProblem,
    }),
    upkeep: createUpkeep(options, archive),
    operationalEvents: new OperationalEvents({
      store: store.operational,
      clock,
      endpoints: store.endpoints,
      versions: store.catalogue,
      isLeader: () => options.engine.isLeader,
      everyMs: config.operationalEventsMs,
      thresholdsEveryMs: config.operationalLevelsMs,
      operatorTenant: config.operatorTenant,
      deadWindowMs: config.deadEventWindowMs,
      noticeWindowMs: config.noticeWindowMs,
      deadLettersThreshold: config.deadLettersThreshold,
      queueAgeThresholdMs: config.queueAgeThresholdMs,
      get publicUrl() {
        return options.address.publicUrl;
      },
      onProblem,
    }),
    tasks: config.role === 'api' ? null : createTaskRunner(options),
    drainer: createDrainer(options),
    kafka: config.kafkaBrokers.length === 0 ? null : createKafkaSource(options),
    archive,
  };
}

function createUpkeep(
  { config, store, clock, log, engine, metrics, onProblem }: BackgroundOptions,
  archive: ArchiveRuns | null,
): Service {
  const onDisabled = (disabled: readonly { id: Uuid; reason: DisabledReason }[]): void => {
    for (const { id, reason } of disabled) {
      metrics?.onEndpointDisabled(reason);
      log.warn({ endpoint_id: publicId('ep', id), reason }, 'endpoint was disabled');
    }
    void store.endpoints.refresh().catch((error) => onProblem('read endpoints', error));
  };
  return new Upkeep({
    store: store.upkeep,
    clock,
    everyMs: config.upkeepMs,
    retention: store.retention,
    days: retentionOf(config),
    beforeDrop: (partition) =>
      archive === null ? store.archive.mayDrop(partition) : store.archive.request(partition),
    startArchive: archive === null ? undefined : () => archive.runIfNeeded(),
    onDropped: (partitions) => log.info({ partitions }, 'dropped expired partitions'),
    onDeadLettersExpired: (count, endpointIds) => {
      log.warn({ count }, 'dead letters expired');
      metrics?.onDeadLettersExpired(count);
      for (const id of endpointIds) engine.router.wake(id);
    },
    minuteStatisticsMs: config.statsMinutesMs,
    skippedPerEndpoint: config.skippedPerEndpoint,
    skippedRetentionMs: config.skippedRetentionMs,
    autoDisable: {
      deadRate: config.autoDisableDeadRate,
      minDeliveries: config.autoDisableMinDeliveries,
      minMs: config.autoDisableDeadMs,
      failingMs: config.autoDisableFailingMs,
    },
    async checkClock() {
      const askedAt = clock.monotonic();
      clock.correct(await store.eventStore.now(), clock.monotonic() - askedAt);
      return clock.isSteady;
    },
    onPaused: (isPaused) =>
      isPaused
        ? log.warn("upkeep deletes and disables nothing until the database's clock was steady for an hour")
        : log.info("the database's clock is steady; upkeep deletes expired data again"),
    onDisabled,
    onProblem,
  });
}

function createTaskRunner({ config, store, clock, engine, notifier, onProblem }: BackgroundOptions): Service {
  const runner = new TaskRunner({
    tasks: store.tasks,
    clock,
    runner: newId(clock.now()),
    silentMs: config.taskTakeoverMs,
    pollMs: Math.min(config.sweepMs, config.taskTakeoverMs),
    wake: (endpointId) => engine.router.wake(endpointId),
    onProblem,
  });
  notifier.subscribe('tasks', () => runner.runSoon());
  return runner;
}

function createArchiveRuns(options: BackgroundOptions): ArchiveRuns {
  const { config, store, log, engine, notifier, metrics, program, onProblem } = options;
  const runs = new ArchiveRuns({ config, requests: store.archive, log, metrics, program, onProblem });
  // Restores are tasks. One process is enough.
  notifier.subscribe('tasks', () => {
    if (engine.isLeader) void runs.runIfNeeded().catch((error) => onProblem('start the archive', error));
  });
  return runs;
}

function createDrainer({ config, store, clock, log, engine, ingest, onProblem }: BackgroundOptions): Service {
  const drainer = new Drainer({
    outbox: store.outbox,
    sink: ingest.committedEvents,
    clock,
    isLeader: () => engine.isLeader,
    pollMs: config.outboxPollMs,
    standInMs: config.outboxStandInMs,
    batchRows: config.ingestBatchRows,
    batchBytes: config.ingestBatchBytes,
    onRejected: (id, reason) =>
      log.error({ event_id: publicId('evt', id), reason }, 'a published event was rejected'),
    onHeld: (tenant, reason) =>
      log.warn({ tenant, reason }, 'the rows of a tenant wait in the outbox because of its limit'),
    onProblem,
  });
  engine.onFacts(({ outboxSeq }) => drainer.onSeq(outboxSeq));
  return drainer;
}
