/**
 * Every metric there is. docs/metrics.md is written from this table, and the alert rules and the dashboard may name
 * nothing else. Labels are of closed or capped sets; endpoints are never labels.
 *
 * `scope` says how several processes add up. process: each shows its own part, and the sum is the whole.
 * database: a figure of the whole database, shown by the one process that owns shard 0.
 */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels?: readonly string[];
  readonly scope?: 'database';
}

export const catalogue = {
  // --- accepting
  posthorn_events_accepted_total: {
    type: 'counter',
    labels: ['event_type'],
    help: 'Events that were stored and answered 202, without repeats of an idempotency key.',
  },
  posthorn_events_repeated_total: {
    type: 'counter',
    help: 'Events that were answered 202 because their idempotency key was known already.',
  },
  posthorn_events_unmatched_total: {
    type: 'counter',
    help: 'Accepted events that no endpoint had subscribed to.',
  },
  posthorn_deliveries_created_total: { type: 'counter', help: 'Deliveries made for accepted events.' },
  posthorn_deliveries_handed_on_total: {
    type: 'counter',
    labels: ['to'],
    help: 'New deliveries by who was told of them: "self", a "sibling" process of this node, or by a "notify" in the database whoever owns their lane.',
  },
  posthorn_rejected_total: {
    type: 'counter',
    labels: ['code'],
    help: 'Requests, and events of batches, that were answered with a problem, by its code. "overloaded" is load that was shed.',
  },
  posthorn_accept_waiting: { type: 'gauge', help: 'Events that wait for their commit.' },

  // --- delivering
  posthorn_attempts_total: { type: 'counter', labels: ['event_type'], help: 'Requests made to receivers.' },
  posthorn_attempts_succeeded_total: {
    type: 'counter',
    labels: ['event_type'],
    help: 'Requests that the receiver took.',
  },
  posthorn_attempts_failed_total: {
    type: 'counter',
    labels: ['event_type', 'reason'],
    help: 'Requests that failed, by error class.',
  },
  posthorn_response_time_seconds: {
    type: 'histogram',
    help: 'Duration of requests that were answered or ran into their deadline.',
  },
  posthorn_delivery_latency_seconds: {
    type: 'histogram',
    help: 'From accept (or replay, or deliver_at) to delivered, retries included.',
  },
  posthorn_attempts_per_delivery: {
    type: 'histogram',
    help: 'Attempts of deliveries that ended, delivered or dead, since they were accepted or last replayed.',
  },
  posthorn_deliveries_delivered_total: { type: 'counter', help: 'Deliveries that ended well.' },
  posthorn_deliveries_retried_total: {
    type: 'counter',
    help: 'Failed attempts after which the delivery was given another time.',
  },
  posthorn_deliveries_dead_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Deliveries that became dead letters.',
  },
  posthorn_in_flight: { type: 'gauge', help: 'Requests on the wire.' },
  posthorn_sockets: {
    type: 'gauge',
    labels: ['state'],
    help: 'Connections to receivers, in use or kept warm.',
  },
  posthorn_unsettled: { type: 'gauge', help: 'Outcomes that are not written down yet.' },

  // --- what waits
  posthorn_queue_depth: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'Deliveries that wait. kind: fresh, or retry (it has a time of its own). state: flowing, or held (paused, circuit open, told to wait, blocked by the order).',
  },
  posthorn_queue_oldest_age_seconds: {
    type: 'gauge',
    labels: ['kind', 'state'],
    help: 'How long the oldest of them has waited: a fresh one since it was accepted, a retry since it was due.',
  },
  posthorn_lanes: { type: 'gauge', help: 'Endpoints that this process delivers to.' },
  posthorn_lane_items: { type: 'gauge', help: 'Deliveries held in memory.' },
  posthorn_lane_bytes: { type: 'gauge', help: 'Bytes of payload held in memory for them.' },
  posthorn_dead_letters: {
    type: 'gauge',
    scope: 'database',
    help: 'Dead letters that nobody has dealt with.',
  },
  posthorn_dead_letters_by_tenant: {
    type: 'gauge',
    labels: ['tenant'],
    scope: 'database',
    help: 'The same, of the tenants that have most of them; all others together are "other".',
  },

  // --- endpoints
  posthorn_endpoints: { type: 'gauge', labels: ['state'], help: 'Endpoints: enabled, paused or disabled.' },
  posthorn_endpoints_disabled_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Endpoints that Posthorn switched off by itself.',
  },
  posthorn_circuits_open: { type: 'gauge', help: 'Endpoints whose circuit is open or being probed.' },
  posthorn_circuit_changes_total: {
    type: 'counter',
    labels: ['to'],
    help: 'Changes of circuits, by the state they changed to.',
  },

  // --- publishing from transactions
  posthorn_relay_lag_seconds: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'How long the oldest committed event has waited to be taken over from an outbox: the one in the database of Posthorn itself ("outbox"), or one that a relay reads. Grows while that relay is silent.',
  },
  posthorn_relay_rejected: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'Events of an outbox that were put aside because they cannot be accepted.',
  },
  posthorn_relay_retained_bytes: {
    type: 'gauge',
    labels: ['source'],
    scope: 'database',
    help: 'Log that a source keeps for the relay that follows it.',
  },

  // --- inside
  posthorn_subscription_cache_lookups_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Questions which endpoints want an event, answered from what is remembered for its tenant and type (hit) or worked out (miss).',
  },
  posthorn_subscription_cache_reloads_total: {
    type: 'counter',
    help: 'Reads of changed endpoints into memory.',
  },
  posthorn_subscription_cache_rematched_total: {
    type: 'counter',
    help: 'Batches of events that were matched again because an endpoint had changed meanwhile.',
  },
  posthorn_subscription_cache_unconfirmed_seconds: {
    type: 'gauge',
    help: 'How long ago the database was last heard to have the version of endpoints that is in memory.',
  },
  posthorn_commit_items: {
    type: 'histogram',
    labels: ['stage'],
    help: 'Events (accept) or outcomes (settle) that shared a commit.',
  },
  posthorn_commit_wait_seconds: {
    type: 'histogram',
    labels: ['stage'],
    help: 'How long the first of a commit waited for it to begin.',
  },
  posthorn_commit_duration_seconds: { type: 'histogram', labels: ['stage'], help: 'How long commits took.' },
  posthorn_pool_connections: {
    type: 'gauge',
    labels: ['pool', 'state'],
    help: 'Connections to PostgreSQL by purpose: in use, idle, and the most that may be.',
  },
  posthorn_pool_waiting: {
    type: 'gauge',
    labels: ['pool'],
    help: 'Queries that wait for a connection.',
  },
  posthorn_shards_owned: {
    type: 'gauge',
    help: 'Shards of endpoints that this process delivers; 256 in all.',
  },
  posthorn_ownership_proven: {
    type: 'gauge',
    help: '1 if the process may send: its proof of ownership is fresh. Always 0 where no worker runs.',
  },
  posthorn_internal_problems_total: {
    type: 'counter',
    help: 'Failures inside Posthorn that it goes on from by itself, mostly of the database.',
  },
  posthorn_local_shortages_total: {
    type: 'counter',
    labels: ['code'],
    help: 'Requests that were put back because this machine lacked descriptors (EMFILE, ENFILE), ports (EADDRNOTAVAIL), buffers (ENOBUFS) or memory (ENOMEM). They are no attempts.',
  },
  posthorn_event_loop_delay_seconds: {
    type: 'gauge',
    labels: ['stat'],
    help: 'How late timers fired between the last two measurements: p50, p99 and max.',
  },
  posthorn_event_loop_utilization: {
    type: 'gauge',
    help: 'Share of its time that the process was busy, between the last two measurements.',
  },
  posthorn_measurement_age_seconds: {
    type: 'gauge',
    help: 'Age of the figures that are not taken at the moment of the scrape: queue, dead letters, endpoints, event loop.',
  },
  posthorn_processes: {
    type: 'gauge',
    labels: ['state'],
    help: 'Child processes of this node: expected, and those that answered this scrape.',
  },
  posthorn_build_info: {
    type: 'gauge',
    labels: ['version', 'role'],
    help: 'Always 1; which Posthorn this is.',
  },
  process_cpu_seconds_total: { type: 'counter', help: 'Processor time used, user and system.' },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory that the process occupies.' },
  process_heap_bytes: { type: 'gauge', help: 'Of that, the heap of JavaScript in use.' },
  process_start_time_seconds: { type: 'gauge', help: 'When the process started, seconds since 1970.' },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof catalogue;

export const metricNames = Object.keys(catalogue) as MetricName[];
export const definitionOf = (name: MetricName): MetricDefinition => catalogue[name];
