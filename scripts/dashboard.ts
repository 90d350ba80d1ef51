/** The Grafana dashboard as code: rows of panels. The first row warns of an outage. */
import { fileURLToPath } from 'node:url';

export const dashboardFile = fileURLToPath(new URL('../ops/grafana/dashboard.json', import.meta.url));

interface Query {
  readonly expr: string;
  readonly legend?: string;
}

interface Panel {
  readonly title: string;
  readonly about: string;
  readonly unit?: string;
  readonly queries: readonly Query[];
  /** Values from here on are drawn red. */
  readonly redFrom?: number;
}

const rate = (name: string, by = '', where = ''): string =>
  `sum${by === '' ? '' : ` by (${by})`} (rate(${name}${where}[$__rate_interval]))`;
const quantile = (p: number, histogram: string, where = ''): string =>
  `histogram_quantile(${p}, ${rate(`${histogram}_bucket`, 'le', where)})`;
const quantiles = (histogram: string, where = ''): Query[] =>
  [0.5, 0.95, 0.99].map((p) => ({ expr: quantile(p, histogram, where), legend: `p${p * 100}` }));

const rows: Readonly<Record<string, readonly Panel[]>> = {
  'Early warnings': [
    {
      title: 'Waiting deliveries',
      about:
        'Flowing: can be sent. Held: the endpoint is paused, its circuit is open, its receiver sent Retry-After, or its FIFO lane is blocked.',
      queries: [{ expr: 'sum by (kind, state) (posthorn_queue_depth)', legend: '{{kind}}, {{state}}' }],
      redFrom: 10_000,
    },
    {
      title: 'Oldest waiting delivery',
      about: 'Fresh: time since it was accepted. Retry: time since it was due.',
      unit: 's',
      queries: [
        { expr: 'max by (kind) (posthorn_queue_oldest_age_seconds{state="flowing"})', legend: '{{kind}}' },
      ],
      redFrom: 60,
    },
    {
      title: 'Dead letters',
      about: 'Deliveries that failed and that Posthorn no longer retries, by tenant.',
      queries: [
        { expr: 'sum(posthorn_dead_letters)', legend: 'all' },
        { expr: 'sum by (tenant) (posthorn_dead_letters_by_tenant)', legend: '{{tenant}}' },
      ],
      redFrom: 100,
    },
    {
      title: 'Failure rate by event type',
      about: 'The share of requests to receivers that failed.',
      unit: 'percentunit',
      queries: [
        {
          expr: `1 - ${rate('posthorn_attempts_succeeded_total', 'event_type')} / ${rate('posthorn_attempts_total', 'event_type')}`,
          legend: '{{event_type}}',
        },
      ],
      redFrom: 0.05,
    },
  ],
  Deliveries: [
    {
      title: 'Events and attempts per second',
      about: 'Accepted events, and the deliveries and attempts they cause.',
      unit: 'ops',
      queries: [
        { expr: rate('posthorn_events_accepted_total'), legend: 'events accepted' },
        { expr: rate('posthorn_deliveries_created_total'), legend: 'deliveries created' },
        { expr: rate('posthorn_attempts_total'), legend: 'attempts' },
        { expr: rate('posthorn_deliveries_delivered_total'), legend: 'delivered' },
      ],
    },
    {
      title: 'Delivery latency',
      about: 'From acceptance to delivery, including retries.',
      unit: 's',
      queries: quantiles('posthorn_delivery_latency_seconds'),
    },
    {
      title: 'Response time of receivers',
      about: 'Of requests that got a response or timed out.',
      unit: 's',
      queries: quantiles('posthorn_response_time_seconds'),
      redFrom: 10,
    },
    {
      title: 'Failures by reason',
      about: 'docs/errors.md explains the error classes.',
      unit: 'ops',
      queries: [{ expr: rate('posthorn_attempts_failed_total', 'reason'), legend: '{{reason}}' }],
    },
    {
      title: 'Retries and dead letters',
      about: 'Failed attempts that are retried, and deliveries that became dead letters.',
      unit: 'ops',
      queries: [
        { expr: rate('posthorn_deliveries_retried_total'), legend: 'retried' },
        { expr: rate('posthorn_deliveries_dead_total', 'reason'), legend: 'dead: {{reason}}' },
      ],
    },
    {
      title: 'Attempts per delivery',
      about: 'Of finished deliveries.',
      queries: quantiles('posthorn_attempts_per_delivery'),
    },
    {
      title: 'Requests in flight',
      about: 'Unsettled: the request is done, its result is not yet stored.',
      queries: [
        { expr: 'sum(posthorn_in_flight)', legend: 'in flight' },
        { expr: 'sum(posthorn_unsettled)', legend: 'unsettled' },
        { expr: 'sum by (state) (posthorn_sockets)', legend: 'sockets {{state}}' },
      ],
    },
    {
      title: 'Relay lag',
      about: 'How long the oldest event has waited in each source.',
      unit: 's',
      queries: [{ expr: 'max by (source) (posthorn_relay_lag_seconds)', legend: '{{source}}' }],
      redFrom: 30,
    },
    {
      title: 'Kafka lag',
      about: 'Records of each topic that Posthorn has not read yet.',
      unit: 'short',
      queries: [{ expr: 'sum by (topic) (posthorn_kafka_lag_records)', legend: '{{topic}}' }],
    },
    {
      title: 'Hand-over',
      about: 'How new deliveries reach the worker that owns them, and what did not arrive through Redis.',
      unit: 'ops',
      queries: [
        { expr: rate('posthorn_deliveries_handed_on_total', 'to'), legend: '{{to}}' },
        { expr: rate('posthorn_redis_fallbacks_total', 'use'), legend: 'without Redis: {{use}}' },
      ],
    },
    {
      title: 'Processes without Redis',
      about: 'Only with POSTHORN_REDIS_URL. Posthorn works without Redis, more slowly between nodes.',
      queries: [{ expr: 'sum(posthorn_redis_connections{state="down"})', legend: 'down' }],
      redFrom: 1,
    },
  ],
  Endpoints: [
    {
      title: 'Open circuits',
      about: 'Endpoints that keep failing. Posthorn sends them nothing but occasional probes.',
      queries: [{ expr: 'sum(posthorn_circuits_open)', legend: 'open' }],
    },
    {
      title: 'Endpoints',
      about: 'Endpoints by state.',
      queries: [{ expr: 'sum by (state) (posthorn_endpoints)', legend: '{{state}}' }],
    },
    {
      title: 'Endpoints disabled by Posthorn',
      about: 'In the last hour, by reason.',
      queries: [
        {
          expr: 'sum by (reason) (increase(posthorn_endpoints_disabled_total[1h]))',
          legend: '{{reason}}',
        },
      ],
    },
    {
      title: 'Rejected API requests',
      about: 'docs/errors.md explains the codes. "overloaded": Posthorn sheds load.',
      unit: 'ops',
      queries: [{ expr: `${rate('posthorn_rejected_total', 'code')} > 0`, legend: '{{code}}' }],
    },
  ],
  Internals: [
    {
      title: 'Shards owned',
      about: 'The sum over all processes of a region should be 256.',
      queries: [
        {
          expr: 'sum by (region, instance, process) (posthorn_shards_owned)',
          legend: '{{region}} {{instance}} {{process}}',
        },
      ],
    },
    {
      title: 'Work by role and region',
      about:
        'What an autoscaler looks at: waiting deliveries that can be sent, and events that wait for their commit.',
      queries: [{ expr: 'sum by (role, region) (posthorn_work_waiting)', legend: '{{role}} {{region}}' }],
    },
    {
      title: 'Age of the oldest work',
      about: 'By role and region.',
      unit: 's',
      queries: [
        { expr: 'max by (role, region) (posthorn_work_oldest_age_seconds)', legend: '{{role}} {{region}}' },
      ],
      redFrom: 60,
    },
    {
      title: 'Event loop delay',
      about: 'p99 of each process.',
      unit: 's',
      queries: [
        {
          expr: 'posthorn_event_loop_delay_seconds{stat="p99"}',
          legend: '{{instance}} {{process}}',
        },
      ],
      redFrom: 0.2,
    },
    {
      title: 'Event loop utilization',
      about: 'The share of time that a process is busy.',
      unit: 'percentunit',
      queries: [{ expr: 'posthorn_event_loop_utilization', legend: '{{instance}} {{process}}' }],
    },
    {
      title: 'Events per commit',
      about: 'How many events share a commit.',
      queries: quantiles('posthorn_commit_items', '{stage="accept"}'),
    },
    {
      title: 'Commit duration',
      about: 'p99 by stage. Wait: how long the first item of a commit waited for it.',
      unit: 's',
      queries: (['accept', 'settle'] as const).flatMap((stage) => [
        {
          expr: quantile(0.99, 'posthorn_commit_duration_seconds', `{stage="${stage}"}`),
          legend: `${stage}`,
        },
        {
          expr: quantile(0.99, 'posthorn_commit_wait_seconds', `{stage="${stage}"}`),
          legend: `${stage}: wait`,
        },
      ]),
    },
    {
      title: 'PostgreSQL connections',
      about: 'Connections in use by pool, and queries that wait for one.',
      queries: [
        { expr: 'sum by (pool) (posthorn_pool_connections{state="used"})', legend: '{{pool}}' },
        { expr: 'sum by (pool) (posthorn_pool_waiting)', legend: '{{pool}}: waiting' },
      ],
    },
    {
      title: 'Subscription cache hits',
      about: 'The share of events that were matched with the current endpoints at the first try.',
      unit: 'percentunit',
      queries: [
        {
          expr: `${rate('posthorn_subscription_cache_lookups_total', '', '{result="hit"}')} / ${rate('posthorn_subscription_cache_lookups_total')}`,
          legend: 'hits',
        },
      ],
    },
    {
      title: 'Memory',
      about: 'Resident memory of each process.',
      unit: 'bytes',
      queries: [{ expr: 'process_resident_memory_bytes', legend: '{{instance}} {{process}}' }],
    },
  ],
};

const PANEL = { width: 6, height: 8 };
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own placeholder
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

export function dashboard(): string {
  const panels: object[] = [];
  let y = 0;
  for (const [title, group] of Object.entries(rows)) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    });
    y += 1;
    for (const [index, panel] of group.entries()) {
      const x = (index * PANEL.width) % 24;
      const line = Math.floor((index * PANEL.width) / 24);
      const gridPos = { x, y: y + line * PANEL.height, w: PANEL.width, h: PANEL.height };
      panels.push(toPanel(panel, panels.length + 1, gridPos));
    }
    y += Math.ceil((group.length * PANEL.width) / 24) * PANEL.height;
  }
  return `${JSON.stringify({ ...FRAME, panels }, null, 2)}\n`;
}

function toPanel(
  { title, about, unit = 'short', queries, redFrom }: Panel,
  id: number,
  gridPos: object,
): object {
  const steps = [
    { color: 'green', value: null },
    ...(redFrom === undefined ? [] : [{ color: 'red', value: redFrom }]),
  ];
  return {
    id,
    type: 'timeseries',
    title,
    description: about,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: { mode: 'absolute', steps },
        custom: {
          lineWidth: 1,
          fillOpacity: 8,
          thresholdsStyle: { mode: redFrom === undefined ? 'off' : 'dashed' },
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(({ expr, legend = '' }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

const FRAME = {
  uid: 'posthorn',
  title: 'Posthorn',
  description: 'Generated by `npm run ops:dashboard` from scripts/dashboard.ts.',
  tags: ['posthorn', 'webhooks'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  templating: {
    list: [
      {
        name: 'datasource',
        type: 'datasource',
        query: 'prometheus',
        label: 'Data source',
        hide: 0,
        refresh: 1,
      },
    ],
  },
  annotations: { list: [] },
  links: [],
};
