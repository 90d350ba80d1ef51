/**
 * The metrics of a process: counters that its parts increase, and figures read from the parts when they are scraped.
 */
import { type Config, readVersion, retentionOf } from './config/index.ts';
import type { Engine } from './create-engine.ts';
import type { Ingest } from './create-ingest.ts';
import { kafkaTopicsOf } from './create-kafka-source.ts';
import type { RedisParts } from './create-redis.ts';
import { type Deliverer, SHORTAGES } from './deliver/index.ts';
import type { QueueDepth } from './dispatch/index.ts';
import type { Clock } from './domain/clock.ts';
import type { DisabledReason } from './domain/endpoint.ts';
import { reportStorage, type StorageReport } from './manage/storage.ts';
import type { LaneReader } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { OutboxLag, OutboxStore } from './ports/outbox-store.ts';
import { type Database, type Pool, purposes } from './postgres/database.ts';
import { countDeadLetters, type DeadLetterDepth } from './postgres/queries/count-dead-letters.ts';
import { type KafkaPartitionStatus, listKafkaPartitions } from './postgres/queries/kafka-status.ts';
import { listRegions } from './postgres/queries/regions.ts';
import { listRelaySources, type RelaySource } from './postgres/queries/relay-sources.ts';
import {
  addAcceptWork,
  addDeliveryWork,
  addRegions,
  addShards,
  measureRegions,
  type RegionFigures,
} from './region-metrics.ts';
import type { TailChannels } from './telemetry/live-tail/index.ts';
import {
  AcceptMetrics,
  type Add,
  AttemptMetrics,
  CommitMetrics,
  ConversionMetrics,
  KafkaMetrics,
  Metrics,
  ProcessMetrics,
  type Source,
} from './telemetry/metrics/index.ts';
import { Measurements, measureEach } from './upkeep/index.ts';

export interface MeasuredParts {
  readonly clock: Clock;
  readonly database: Database;
  readonly outbox: Pick<OutboxStore, 'readLag'>;
  readonly engine: Engine;
  readonly queue: Pick<LaneReader, 'countWaiting'>;
  readonly endpoints: EndpointDirectory;
  readonly deliverer: Deliverer;
  readonly ingest: Ingest;
  /** Null: Redis is not configured. */
  readonly redis: RedisParts | null;
  readonly tailChannels: TailChannels | null;
  readonly onProblem: (what: string, error: unknown) => void;
}

const MAX_DEAD_LETTERS = 1_000_000;
const MANY_DEAD_LETTERS = 20_000;
const MAX_RELAYS = 50;
/** Sizes change slowly, and reading them takes some milliseconds: once in this many measurements. */
const STORAGE_EVERY = 4;

export class AppMetrics {
  readonly metrics = new Metrics();
  readonly attempts: AttemptMetrics;
  readonly accepts: AcceptMetrics;
  readonly conversions = new ConversionMetrics();
  readonly kafka: KafkaMetrics;
  readonly acceptCommits = new CommitMetrics('accept');
  readonly settleCommits = new CommitMetrics('settle');
  readonly #config: Config;
  readonly #process = new ProcessMetrics();
  readonly #disabled = new Map<DisabledReason, number>([
    ['gone', 0],
    ['dead_letters', 0],
    ['failing', 0],
  ]);
  readonly #circuits = { open: 0, closed: 0 };
  /** Has every code, with 0 at first: Prometheus does not count the first sample of a series as an increase. */
  readonly #shortages = new Map([...SHORTAGES].map((code) => [code, 0]));
  readonly #archive = { rows: 0, bytes: 0, done: 0, failed: 0 };
  #internalProblems = 0;
  #expiredDeadLetters = 0;
  #confirmedAt: number | null = null;
  #deadLetters: { readonly depth: DeadLetterDepth; readonly validUntil: number } | null = null;
  #storage: { readonly report: StorageReport; readonly validUntil: number } | null = null;
  #measurements: Measurements<Figures> | null = null;

  constructor(config: Config) {
    this.#config = config;
    const capped = { eventTypes: config.metricsEventTypes };
    this.attempts = new AttemptMetrics(capped);
    this.accepts = new AcceptMetrics(capped);
    this.kafka = new KafkaMetrics(kafkaTopicsOf(config));
    const { metrics } = this;
    for (const { source } of [
      this.attempts,
      this.conversions,
      this.kafka,
      this.accepts,
      this.acceptCommits,
      this.settleCommits,
      this.#process,
    ])
      metrics.addSource(source);
    metrics.addSource(this.#ownSource);
  }

  countProblem(): void {
    this.#internalProblems += 1;
  }

  /** Counts a shortage on this machine. It is an internal problem too, so that the alert for those fires. */
  countShortage(code: string): void {
    this.#shortages.set(code, (this.#shortages.get(code) ?? 0) + 1);
    this.countProblem();
  }

  onCircuitChanged(allowsTraffic: boolean): void {
    this.#circuits[allowsTraffic ? 'closed' : 'open'] += 1;
  }

  onEndpointDisabled(reason: DisabledReason): void {
    this.#disabled.set(reason, (this.#disabled.get(reason) ?? 0) + 1);
  }

  onDeadLettersExpired(count: number): void {
    this.#expiredDeadLetters += count;
  }

  onArchived({ rows, bytes }: { readonly rows: number; readonly bytes: number }): void {
    this.#archive.rows += rows;
    this.#archive.bytes += bytes;
  }

  onArchiveRun(result: 'done' | 'failed'): void {
    this.#archive[result] += 1;
  }

  /** Call this when the store has the same version of the endpoints as this process. */
  onEndpointsConfirmed(monotonic: number): void {
    this.#confirmedAt = monotonic;
  }

  /** Adds the figures of these parts. Call it once, before `start`. */
  connect(parts: MeasuredParts): void {
    this.metrics.addSource((add) => addParts(parts, add, this.#config));
    this.metrics.addSource((add) => addRedis(parts, add));
    this.metrics.addSource((add) => this.#addMeasured(parts, add));
    this.#measurements = new Measurements({
      clock: parts.clock,
      everyMs: this.#config.measureMs,
      measure: () => this.#measure(parts),
      onProblem: parts.onProblem,
    });
  }

  start(): void {
    this.#process.start();
    this.#measurements?.start();
  }

  async #measure(parts: MeasuredParts): Promise<Figures> {
    this.#process.measure();
    const { database, engine, onProblem } = parts;
    const pool = database.pool('api');
    const own = { queue: () => engine.countQueue() };
    const endpoints = countEndpoints(parts);
    if (!engine.isLeader) return { ...(await measureEach(own, onProblem)), endpoints, deployment: null };
    const { queue, ...deployment } = await measureEach(
      {
        ...own,
        deadLetters: () => this.#countDeadLetters(pool, parts.clock),
        outbox: () => parts.outbox.readLag(),
        relays: () => listRelaySources(pool),
        kafka: () => listKafkaPartitions(pool, kafkaTopicsOf(this.#config)),
        storage: () => this.#readStorage(pool, parts.clock),
        regions: async () => measureRegions(await listRegions(pool, this.#config.deadAfterMs), parts),
      },
      onProblem,
    );
    return { queue, endpoints, deployment };
  }

  async stop(): Promise<void> {
    this.#process.stop();
    await this.#measurements?.stop();
  }

  /** Counts less often if counting takes long, so that it takes at most a fiftieth of the time. */
  async #countDeadLetters(pool: Pool, clock: Clock): Promise<DeadLetterDepth> {
    const startedAt = clock.monotonic();
    if (this.#deadLetters !== null && startedAt < this.#deadLetters.validUntil)
      return this.#deadLetters.depth;
    const depth = await countDeadLetters(pool, {
      tenants: this.#config.metricsTenants,
      max: MAX_DEAD_LETTERS,
    });
    const tookMs = clock.monotonic() - startedAt;
    this.#deadLetters = {
      depth,
      validUntil: startedAt + (depth.total > MANY_DEAD_LETTERS ? 50 * tookMs : 0),
    };
    return depth;
  }

  async #readStorage(pool: Pool, clock: Clock): Promise<StorageReport> {
    const now = clock.monotonic();
    if (this.#storage === null || now >= this.#storage.validUntil) {
      const { partitionDays } = this.#config;
      const report = await reportStorage(pool, { clock, days: retentionOf(this.#config), partitionDays });
      this.#storage = { report, validUntil: now + STORAGE_EVERY * this.#config.measureMs };
    }
    return this.#storage.report;
  }

  readonly #ownSource: Source = (add) => {
    add('posthorn_internal_problems_total', this.#internalProblems);
    for (const [code, count] of this.#shortages) add('posthorn_local_shortages_total', count, { code });
    for (const [to, count] of Object.entries(this.#circuits))
      add('posthorn_circuit_changes_total', count, { to });
    for (const [reason, count] of this.#disabled) add('posthorn_endpoints_disabled_total', count, { reason });
    add('posthorn_dead_letters_expired_total', this.#expiredDeadLetters);
    add('posthorn_archive_rows_total', this.#archive.rows);
    add('posthorn_archive_bytes_total', this.#archive.bytes);
    for (const result of ['done', 'failed'] as const)
      add('posthorn_archive_runs_total', this.#archive[result], { result });
    add('posthorn_build_info', 1, { version: readVersion(), role: this.#config.role });
  };

  #addMeasured({ clock }: MeasuredParts, add: Add): void {
    const monotonic = clock.monotonic();
    if (this.#confirmedAt !== null)
      add('posthorn_subscription_cache_unconfirmed_seconds', (monotonic - this.#confirmedAt) / 1000);
    const measured = this.#measurements?.latest ?? null;
    if (measured === null) return;
    add('posthorn_measurement_age_seconds', (monotonic - measured.takenAt) / 1000);
    const { queue, endpoints, deployment } = measured.figures;
    if (queue !== null) {
      addQueue(add, queue, clock.now());
      addDeliveryWork(add, queue, clock.now(), this.#config);
    }
    for (const [state, count] of Object.entries(endpoints)) add('posthorn_endpoints', count, { state });
    if (deployment === null) return;
    const { deadLetters, outbox, relays, kafka, storage, regions } = deployment;
    if (deadLetters !== null) addDeadLetters(add, deadLetters);
    if (outbox !== null) addOutbox(add, outbox);
    if (relays !== null) addRelays(add, relays);
    if (kafka !== null) addKafka(add, kafka, clock.now());
    if (storage !== null) addStorage(add, storage, clock.now());
    if (regions !== null) addRegions(add, regions, clock.now());
  }
}

/** Null: the last measurement of this figure failed. */
interface Figures {
  readonly queue: QueueDepth | null;
  readonly endpoints: Readonly<Record<'enabled' | 'paused' | 'disabled', number>>;
  /** Figures of the whole deployment. Null: another process reports them. */
  readonly deployment: {
    readonly deadLetters: DeadLetterDepth | null;
    readonly outbox: OutboxLag | null;
    readonly relays: readonly RelaySource[] | null;
    readonly kafka: readonly KafkaPartitionStatus[] | null;
    readonly storage: StorageReport | null;
    readonly regions: RegionFigures | null;
  } | null;
}

function addParts(parts: MeasuredParts, add: Add, config: Config): void {
  const { engine, ingest, endpoints, database } = parts;
  const { stats, ownership, router } = engine;
  const sockets = parts.deliverer.stats();
  for (const [to, count] of Object.entries(router.routeCounts))
    add('posthorn_deliveries_handed_on_total', count, { to });
  add('posthorn_in_flight', stats.inFlight);
  add('posthorn_sockets', sockets.inFlight, { state: 'used' });
  add('posthorn_sockets', sockets.idleSockets, { state: 'idle' });
  add('posthorn_unsettled', stats.unsettled);
  add('posthorn_lanes', stats.lanes);
  add('posthorn_lane_items', stats.inMemory);
  add('posthorn_lane_bytes', stats.heldBytes);
  add('posthorn_circuits_open', stats.openCircuits);
  addShards(add, engine, config);
  add('posthorn_ownership_proven', ownership.shardCount > 0 && ownership.hasValidLease ? 1 : 0);
  add('posthorn_accept_waiting', ingest.acceptor.waitingEvents);
  if (config.role !== 'worker') addAcceptWork(add, ingest);
  add('posthorn_intake_share', ingest.shedder.share);
  for (const [reason, count] of Object.entries(ingest.shedder.shed))
    add('posthorn_events_shed_total', count, { reason });
  const { hits, misses } = ingest.subscriptionLookups;
  add('posthorn_subscription_cache_lookups_total', hits, { result: 'hit' });
  add('posthorn_subscription_cache_lookups_total', misses, { result: 'miss' });
  add('posthorn_subscription_cache_reloads_total', endpoints.reads);
  for (const pool of purposes) {
    const { totalCount, idleCount, waitingCount, options } = database.pool(pool);
    add('posthorn_pool_connections', totalCount - idleCount, { pool, state: 'used' });
    add('posthorn_pool_connections', idleCount, { pool, state: 'idle' });
    add('posthorn_pool_connections', options.max, { pool, state: 'max' });
    add('posthorn_pool_waiting', waitingCount, { pool });
  }
}

function addRedis({ redis, tailChannels, engine }: MeasuredParts, add: Add): void {
  if (redis === null) return;
  add('posthorn_redis_connections', redis.link.isConnected ? 1 : 0, { state: 'up' });
  add('posthorn_redis_connections', redis.link.isConnected ? 0 : 1, { state: 'down' });
  const fallBacks = {
    hand_over: engine.router.undelivered,
    rate_limits: redis.buckets.fallBacks,
    live_tail: tailChannels?.fallBacks ?? 0,
  };
  for (const [use, count] of Object.entries(fallBacks)) add('posthorn_redis_fallbacks_total', count, { use });
  add('posthorn_redis_refused_messages_total', redis.bus.refused);
}

function addQueue(add: Add, depth: QueueDepth, now: number): void {
  for (const state of ['flowing', 'held'] as const) {
    const { fresh, retries, oldestFresh, firstDue } = depth[state];
    add('posthorn_queue_depth', fresh, { kind: 'fresh', state });
    add('posthorn_queue_depth', retries, { kind: 'retry', state });
    // 0 if there is none, or if the first is due later.
    add('posthorn_queue_oldest_age_seconds', Math.max(0, now - oldestFresh) / 1000, { kind: 'fresh', state });
    add('posthorn_queue_oldest_age_seconds', Math.max(0, now - firstDue) / 1000, { kind: 'retry', state });
  }
}

function addDeadLetters(add: Add, depth: DeadLetterDepth): void {
  add('posthorn_dead_letters', depth.total);
  let others = depth.total;
  for (const { tenant, count } of depth.tenants) {
    add('posthorn_dead_letters_by_tenant', count, { tenant });
    others -= count;
  }
  if (others > 0) add('posthorn_dead_letters_by_tenant', others, { tenant: 'other' });
}

/** The outbox in Posthorn's own database. */
function addOutbox(add: Add, outbox: OutboxLag): void {
  add('posthorn_relay_lag_seconds', outbox.lagMs / 1000, { source: 'outbox' });
  add('posthorn_relay_rejected', outbox.rejected, { source: 'outbox' });
}

/** The outboxes of the databases that a relay reads. */
function addRelays(add: Add, relays: readonly RelaySource[]): void {
  for (const { name, lagSeconds, rejected, retainedBytes } of relays.slice(0, MAX_RELAYS)) {
    const source = `relay ${name}`;
    add('posthorn_relay_lag_seconds', lagSeconds, { source });
    add('posthorn_relay_rejected', rejected, { source });
    if (retainedBytes !== null) add('posthorn_relay_retained_bytes', retainedBytes, { source });
  }
}

function addKafka(add: Add, partitions: readonly KafkaPartitionStatus[], now: number): void {
  const rejected = new Map<string, number>();
  const lost = new Map<string, number>();
  /** A topic that was created again has its partitions twice, and each may have waiting records. */
  const waiting = new Map<string, { count: number; labels: { topic: string; partition: string } }>();
  for (const each of partitions) {
    const labels = { topic: each.topic, partition: String(each.partition) };
    const key = `${each.topic}/${each.partition}`;
    waiting.set(key, { count: (waiting.get(key)?.count ?? 0) + each.waiting, labels });
    rejected.set(each.topic, (rejected.get(each.topic) ?? 0) + each.rejected);
    if (!each.isCurrent) continue;
    add('posthorn_kafka_lag_records', each.lag, labels);
    add('posthorn_kafka_paused', each.pausedReason === null ? 0 : 1, labels);
    add('posthorn_kafka_unseen_seconds', Math.max(0, now - each.unseenSince.getTime()) / 1000, labels);
    lost.set(each.topic, (lost.get(each.topic) ?? 0) + each.lost);
  }
  for (const { count, labels } of waiting.values()) add('posthorn_kafka_waiting_records', count, labels);
  for (const [topic, count] of rejected) add('posthorn_kafka_rejected_records', count, { topic });
  for (const [topic, count] of lost) add('posthorn_kafka_lost_records_total', count, { topic });
}

function addStorage(add: Add, storage: StorageReport, now: number): void {
  for (const [kind, { bytes, oldestAt }] of Object.entries(storage.kinds)) {
    add('posthorn_storage_bytes', bytes, { kind });
    const ageMs = oldestAt === null ? 0 : Math.max(0, now - oldestAt);
    add('posthorn_storage_oldest_age_seconds', ageMs / 1000, { kind });
  }
  if (storage.bytesPerDay !== null) add('posthorn_storage_growth_bytes_per_day', storage.bytesPerDay);
  if (storage.fullAt !== null)
    add('posthorn_storage_full_in_seconds', Math.max(0, storage.fullAt - now) / 1000);
  add('posthorn_retention_overdue_seconds', storage.overdueMs / 1000);
}

/** Counts only the shards of this process, so that the sum over all processes is right. */
function countEndpoints({ endpoints, engine }: MeasuredParts): Figures['endpoints'] {
  const counts = { enabled: 0, paused: 0, disabled: 0 };
  for (const shard of engine.ownership.ownedShards) {
    const totals = endpoints.totalsOfShard(shard);
    counts.enabled += totals.endpoints - totals.disabled - totals.paused;
    counts.paused += totals.paused;
    counts.disabled += totals.disabled;
  }
  return counts;
}
