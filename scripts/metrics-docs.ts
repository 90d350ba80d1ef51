import { fileURLToPath } from 'node:url';
import { catalogue, definitionOf, type MetricName } from '../src/telemetry/metrics/index.ts';

export const docsFile = fileURLToPath(new URL('../docs/metrics.md', import.meta.url));

const INTRODUCTION = `# Metrics

<!-- Written by scripts/write-metrics-docs.ts from src/telemetry/metrics/catalogue.ts; a test keeps the two together. -->

\`GET /metrics\` answers in Prometheus's text format. It is open to requests from the machine itself that no proxy has
handed on; others need an admin key, or a read key that belongs to no tenant:

\`\`\`yaml
scrape_configs:
  - job_name: posthorn
    authorization: { credentials: phk_… }   # of scope "read"; not needed from the same machine
    static_configs: [{ targets: ["posthorn-1:8787", "posthorn-2:8787"] }]
rule_files: [alerts.yml]                     # ops/prometheus/alerts.yml
\`\`\`

The job must be called \`posthorn\`: the rules in \`ops/prometheus/alerts.yml\` watch \`up{job="posthorn"}\`. What each alert
means and what to do is in [the runbook](runbook.md); \`ops/grafana/dashboard.json\` shows all of it.

- **Several processes.** Each shows its own part, and the sum over all is the whole: a delivery waits in the lane of the
  one process that owns its endpoint. Figures of the whole database (marked _database_) are shown by the one process that
  owns shard 0, so the sum is right for them too. With \`serve --processes N\` a scrape of the port shows all children, each
  with the label \`process\`; they are not summed there, because a sum falls when a child is restarted, and Prometheus takes
  what is left for an increase. \`posthorn_processes\` tells if one did not answer.
- **Bounded.** Endpoints, events and deliveries are never labels. Event types are the first
  \`POSTHORN_METRICS_EVENT_TYPES\` that turn up, tenants the \`POSTHORN_METRICS_TENANTS\` with most dead letters; all others are
  \`other\`. Reasons are the closed lists of [errors.md](errors.md).
- **Cheap.** A scrape reads memory and asks the database nothing. Depth and age of the queue, dead letters, endpoints and
  the event loop are measured every \`POSTHORN_MEASURE_MS\`; \`posthorn_measurement_age_seconds\` says how long ago that was. An
  endpoint's backlog is counted up to 100,000 of each kind, dead letters up to a million; a round visits a bounded number of
  rows, so that with very many large backlogs some figures are a few rounds old.
- \`POSTHORN_METRICS=off\` switches all of it off.
`;

export function metricsDocs(): string {
  const rows = (Object.keys(catalogue) as MetricName[]).map((name) => {
    const { type, help, labels = [], scope } = definitionOf(name);
    const shown = labels.map((label) => `\`${label}\``).join(', ');
    return [`\`${name}\``, type, shown, scope === 'database' ? `${help} _database_` : help];
  });
  return `${INTRODUCTION}\n${table([['metric', 'type', 'labels', 'meaning'], ...rows])}\n`;
}

function table([head, ...rows]: string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head!), line(head!.map(() => '---')), ...rows.map(line)].join('\n');
}
