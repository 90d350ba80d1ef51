/**
 * All metrics. docs/metrics.md is generated from this table, and the alert rules and the dashboard may use no others.
 * The number of values of a label is bounded; endpoints are never labels.
 */
import type { MetricDefinition } from './metric-definition.ts';

export const catalogue = {
  // --- accepting
  posthorn_events_accepted_total: {
    type: 'counter',
    labels: ['event_type'],
    help: 'Events that were stored and answered 202, without repeated idempotency keys.',
  },
  posthorn_events_repeated_total: {
    type: 'counter',
    help: 'Events that were answered 202 without being stored, because their idempotency key was already used.',
  },
  posthorn_events_unmatched_total: {
    type: 'counter',
    help: 'Accepted events that are sent to no endpoint: none subscribes to them, filters leave them out, or all that match are disabled.',
  },
  posthorn_deliveries_created_total: { type: 'counter', help: 'Deliveries created for accepted events.' },
  posthorn_deliveries_handed_on_total: {
    type: 'counter',
    labels: ['to'],
    help: 'New deliveries, by how they reach the worker that owns them: in this process ("self"), handed to another process of this or another node ("sibling"), handed to another node through "redis", or through a "notify" in the database. A delivery that did not arrive through Redis counts again as "notify".',
  },
  posthorn_rejected_total: {
    type: 'counter',
    labels: ['code'],
    help: 'Requests and events in batches that were answered with a problem, by its code. "overloaded": rejected because too many events were waiting, or because the process or the database was slow.',
  },
  posthorn_schema_failures_total: {
    type: 'counter',
    labels: ['event_type', 'result'],
    help: 'Events whose payload did not match the catalogue: stored and "flagged", or "refused".',
  },
  posthorn_accept_waiting: { type: 'gauge', help: 'Events that wait for their commit.' },
  posthorn_intake_share: {
    type: 'gauge',
    help: 'Share of published events that is admitted. Below 1 while the event loop, the commits or the delivery on this node are slow.',
  },
  posthorn_events_shed_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Published events that were rejected with 503 because the "event_loop", the "commits" or the "delivery" on this node were slow.',
  },

  // --- delivering
  posthorn_attempts_total: { type: 'counter', labels: ['event_type'], help: 'Requests sent to receivers.' },
  posthorn_attempts_succeeded_total: {
    type: 'counter',
    labels: ['event_type'],
    help: 'Requests that the receiver answered with success.',
  },
  posthorn_attempts_failed_total: {
    type: 'counter',
    labels: ['event_type', 'reason'],
    help: 'Requests that failed, by error class.',
  },
  posthorn_conversions_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Payloads for endpoints that pin a version: "converted" by a converter, "failed", or "reused" from an earlier attempt. A result that is shared by several deliveries counts once.',
  },
  posthorn_conversion_seconds_total: {
    type: 'counter',
    help: 'Time that conversions took, including their wait for a converter process.',
  },
  posthorn_as_published_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Attempts to endpoints that pin a version with the payload as it was published: the type has "no_versions", "no_matching_version" fits the pin, or "no_converter" leads there.',
  },
  posthorn_response_time_seconds: {
    type: 'histogram',
    help: 'Duration of requests that were answered or timed out.',
  },
  posthorn_delivery_latency_seconds: {
    type: 'histogram',
    help: 'Time from acceptance (or replay, or deliver_at) to delivery, including retries.',
  },
  posthorn_attempts_per_delivery: {
    type: 'histogram',
    help: 'Attempts per delivery that was delivered or died, since it was accepted or last replayed.',
  },
  posthorn_deliveries_delivered_total: { type: 'counter', help: 'Deliveries that were delivered.' },
  posthorn_deliveries_retried_total: {
    type: 'counter',
    help: 'Failed attempts after which the delivery was scheduled for a retry.',
  },
  posthorn_deliveries_dead_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Deliveries that became dead letters, by reason.',
  },
  posthorn_in_flight: { type: 'gauge', help: 'Requests in flight to receivers.' },
  posthorn_sockets: {
    type: 'gauge',
    labels: ['state'],
    help: 'Connections to receivers, in use or kept open for reuse.',
  },
  posthorn_unsettled: {
    type: 'gauge',
    help: 'Results of attempts that are not recorded in the database yet.',
  },

  // --- waiting deliveries
  posthorn_queue_depth: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'Waiting deliveries. kind: fresh, or retry (scheduled for a time). state: flowing, or held (endpoint paused, circuit open, Retry-After, or FIFO lane blocked).',
  },
  posthorn_queue_oldest_age_seconds: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'Waiting time of the oldest waiting delivery: a fresh one since it was accepted, a retry since it was due.',
  },
  posthorn_work_waiting: {
    type: 'gauge',
    labels: ['role', 'region'],
    help: 'Work for an autoscaler. role "worker": deliveries that wait for their first attempt and can be sent, by region; those of a region without workers are reported by the process that owns shard 0. role "api": events that wait for their commit, with region "default".',
  },
  posthorn_work_oldest_age_seconds: {
    type: 'gauge',
    labels: ['role', 'region'],
    help: 'How long the oldest of this work has waited. role "worker": also how late the first retry is.',
  },
  posthorn_region_workers: {
    type: 'gauge',
    scope: 'database',
    labels: ['region'],
    help: 'Workers of each region that an endpoint names, without the default region.',
  },
  posthorn_lanes: { type: 'gauge', help: 'Endpoints that this process delivers to.' },
  posthorn_lane_items: { type: 'gauge', help: 'Deliveries queued in memory.' },
  posthorn_lane_bytes: { type: 'gauge', help: 'Payload bytes of the deliveries queued in memory.' },
  posthorn_dead_letters: {
    type: 'gauge',
    scope: 'database',
    help: 'Dead letters that were neither replayed nor discarded.',
  },
  posthorn_dead_letters_by_tenant: {
    type: 'gauge',
    labels: ['tenant'],
    scope: 'database',
    help: 'Dead letters of the tenants that have the most. All other tenants together are "other".',
  },

  posthorn_dead_letters_expired_total: {
    type: 'counter',
    help: 'Dead letters that were discarded because their retention ended.',
  },

  // --- endpoints
  posthorn_endpoints: {
    type: 'gauge',
    labels: ['state'],
    help: 'Endpoints, by state: enabled, paused or disabled.',
  },
  posthorn_endpoints_disabled_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Endpoints that Posthorn disabled automatically, by reason.',
  },
  posthorn_circuits_open: { type: 'gauge', help: 'Endpoints whose circuit is open or being probed.' },
  posthorn_circuit_changes_total: {
    type: 'counter',
    labels: ['to'],
    help: 'State changes of circuits, by the new state.',
  },

  // --- publishing from transactions
  posthorn_relay_lag_seconds: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'Age of the oldest committed event that Posthorn has not read from an outbox yet: the outbox in its own database ("outbox"), or one that a relay reads. It grows while that relay is down.',
  },
  posthorn_relay_rejected: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'Events of an outbox that were rejected because they are invalid.',
  },
  posthorn_relay_retained_bytes: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'Bytes of write-ahead log that a source keeps for the relay that follows it.',
  },

  // --- reading from Kafka
  posthorn_kafka_records_total: {
    type: 'counter',
    labels: ['topic', 'result'],
    help: 'Kafka records that became events ("stored") or cannot become one ("rejected").',
  },
  posthorn_kafka_lag_records: {
    type: 'gauge',
    labels: ['topic', 'partition'],
    scope: 'database',
    help: 'Records of a partition that Posthorn has not read yet, as its owner last saw it. Waiting and rejected records do not count.',
  },
  posthorn_kafka_unseen_seconds: {
    type: 'gauge',
    labels: ['topic', 'partition'],
    scope: 'database',
    help: 'Time since Kafka last answered for a partition, or since Posthorn found it. It grows while the brokers are unreachable, or while no process reads the partition.',
  },
  posthorn_kafka_paused: {
    type: 'gauge',
    labels: ['topic', 'partition'],
    scope: 'database',
    help: '1 while Posthorn does not read a partition. `paused_reason` in `GET /v1/sources` says why.',
  },
  posthorn_kafka_waiting_records: {
    type: 'gauge',
    labels: ['topic', 'partition'],
    scope: 'database',
    help: 'Records of a partition that were read and wait to be stored: their tenant is over its limit, or an operator retries them. Counted up to 10,000.',
  },
  posthorn_kafka_rejected_records: {
    type: 'gauge',
    labels: ['topic'],
    scope: 'database',
    help: 'Records that cannot become events, until they are retried or discarded. Counted up to 10,000 per partition.',
  },
  posthorn_kafka_lost_records_total: {
    type: 'counter',
    labels: ['topic'],
    scope: 'database',
    help: 'Records that Kafka deleted before Posthorn read them.',
  },

  posthorn_accept_log_events_total: {
    type: 'counter',
    help: 'Published events that Kafka has confirmed (`POSTHORN_BACKBONE=kafka`).',
  },
  posthorn_accept_log_failures_total: {
    type: 'counter',
    help: 'Writes to the accept topic that Kafka did not confirm. Posthorn repeats each for up to 10 seconds, then answers 503.',
  },

  // --- Redis
  posthorn_redis_connections: {
    type: 'gauge',
    labels: ['state'],
    help: 'Processes whose connection to Redis answers ("up") or that have none ("down"). Only with POSTHORN_REDIS_URL.',
  },
  posthorn_redis_fallbacks_total: {
    type: 'counter',
    labels: ['use'],
    help: 'What Posthorn did without Redis because it was unavailable or slow: deliveries that Redis did not bring to another process, so that their owner was notified ("hand_over"), requests and events that a process limited by itself ("rate_limits"), and batches of messages that were sent through the database ("live_tail").',
  },
  posthorn_redis_refused_messages_total: {
    type: 'counter',
    help: 'Messages from Redis that were not authentic, repeated or too old. Somebody else writes to the channels of Posthorn, or a process has other encryption keys.',
  },

  // --- storage
  posthorn_storage_bytes: {
    type: 'gauge',
    labels: ['kind'],
    scope: 'database',
    help: 'Bytes on disk, with indexes, by kind of data.',
  },
  posthorn_storage_oldest_age_seconds: {
    type: 'gauge',
    labels: ['kind'],
    scope: 'database',
    help: 'Age of the oldest data, by kind.',
  },
  posthorn_storage_growth_bytes_per_day: {
    type: 'gauge',
    scope: 'database',
    help: 'Bytes that events, deliveries and attempts add per day. Missing until there is an hour of data.',
  },
  posthorn_storage_full_in_seconds: {
    type: 'gauge',
    scope: 'database',
    help: 'Time until the disk of the database is full at the current rate. Missing if retention sets in before that, or if Posthorn cannot see the file system.',
  },
  posthorn_retention_overdue_seconds: {
    type: 'gauge',
    scope: 'database',
    help: 'For how long the oldest expired partition could not be dropped. 0 if none is overdue.',
  },

  // --- internals
  posthorn_subscription_cache_lookups_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Events matched with the current endpoints (hit), or with outdated ones and therefore matched again (miss).',
  },
  posthorn_subscription_cache_reloads_total: {
    type: 'counter',
    help: 'Reloads of changed endpoints into memory.',
  },
  posthorn_subscription_cache_rematched_total: {
    type: 'counter',
    help: 'Batches of events that were matched with endpoints again because an endpoint had changed meanwhile.',
  },
  posthorn_subscription_cache_unconfirmed_seconds: {
    type: 'gauge',
    help: 'Time since the database last confirmed that the endpoints in memory are up to date.',
  },
  posthorn_commit_items: {
    type: 'histogram',
    labels: ['stage'],
    help: 'Events (accept) or results of attempts (settle) per commit.',
  },
  posthorn_commit_wait_seconds: {
    type: 'histogram',
    labels: ['stage'],
    help: 'Time that the first item of a commit waited until the commit began.',
  },
  posthorn_commit_duration_seconds: { type: 'histogram', labels: ['stage'], help: 'Duration of commits.' },
  posthorn_pool_connections: {
    type: 'gauge',
    labels: ['pool', 'state'],
    help: 'Connections to PostgreSQL by pool: in use, idle, and the maximum.',
  },
  posthorn_pool_waiting: {
    type: 'gauge',
    labels: ['pool'],
    help: 'Queries that wait for a connection of the pool.',
  },
  posthorn_shards_owned: {
    type: 'gauge',
    labels: ['region'],
    help: 'Shards that this process owns, of 256 in its region. "stand_in": shards of regions without workers, for which this worker of the default region sends.',
  },
  posthorn_ownership_proven: {
    type: 'gauge',
    help: '1 if the process may send, because its lease is valid. Always 0 in a process without a worker.',
  },
  posthorn_archive_rows_total: {
    type: 'counter',
    help: 'Rows that were written to the archive, read back and compared.',
  },
  posthorn_archive_bytes_total: { type: 'counter', help: 'Bytes of those files.' },
  posthorn_archive_runs_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Runs of the archive process that this process started: done, failed.',
  },
  posthorn_internal_problems_total: {
    type: 'counter',
    help: 'Internal failures from which Posthorn recovers by itself, mostly of the database.',
  },
  posthorn_local_shortages_total: {
    type: 'counter',
    labels: ['code'],
    help: 'Requests that Posthorn put back because this machine lacked descriptors (EMFILE, ENFILE), ports (EADDRNOTAVAIL), buffers (ENOBUFS) or memory (ENOMEM). They do not count as attempts.',
  },
  posthorn_unread_answers_total: {
    type: 'counter',
    help: 'Connections that the API closed because the client did not read the answer, or because such answers took too much memory.',
  },
  posthorn_event_loop_delay_seconds: {
    type: 'gauge',
    labels: ['stat'],
    help: 'Delay of timers between the last two measurements: p50, p99 and max.',
  },
  posthorn_event_loop_utilization: {
    type: 'gauge',
    help: 'Share of time that the event loop was busy between the last two measurements.',
  },
  posthorn_measurement_age_seconds: {
    type: 'gauge',
    help: 'Age of the values that are measured periodically and not at the scrape: queue, dead letters, endpoints, event loop.',
  },
  posthorn_processes: {
    type: 'gauge',
    labels: ['state'],
    help: 'Child processes of this node: expected, and answered (included in this scrape).',
  },
  posthorn_build_info: {
    type: 'gauge',
    labels: ['version', 'role'],
    help: 'Always 1. The labels have the version and the role of this process.',
  },
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time used, user and system.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory of the process.' },
  process_heap_bytes: { type: 'gauge', help: 'JavaScript heap in use.' },
  process_start_time_seconds: { type: 'gauge', help: 'When the process started, seconds since 1970.' },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof catalogue;

export const metricNames = Object.keys(catalogue) as MetricName[];
export const definitionOf = (name: MetricName): MetricDefinition => catalogue[name];
