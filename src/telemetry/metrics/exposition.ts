import { definitionOf, type MetricName, metricNames } from './catalogue.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly name: MetricName;
  /** The series of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels: Labels;
  readonly value: number;
}

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Formats samples as Prometheus text. Groups the samples of all processes by metric, as the format requires. Also lists
 * metrics without samples, so that readers see that they exist.
 */
export function toPrometheusText(samples: readonly Sample[]): string {
  const byName = new Map<MetricName, Sample[]>();
  for (const sample of samples) {
    const others = byName.get(sample.name);
    if (others === undefined) byName.set(sample.name, [sample]);
    else others.push(sample);
  }
  let text = '';
  for (const name of metricNames) {
    const { type, help } = definitionOf(name);
    text += `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`;
    for (const { suffix = '', labels, value } of byName.get(name) ?? [])
      text += `${name}${suffix}${labelsOf(labels)} ${numberOf(value)}\n`;
  }
  return text;
}

/** Adds labels to samples, such as the process they come from. */
export const addLabels = (samples: readonly Sample[], label: Labels): Sample[] =>
  samples.map((sample) => ({ ...sample, labels: { ...label, ...sample.labels } }));

/** The number of processes that a scrape should include, and the number that it includes. */
export const processCounts = (expected: number, answered: number): Sample[] => [
  { name: 'posthorn_processes', labels: { state: 'expected' }, value: expected },
  { name: 'posthorn_processes', labels: { state: 'answered' }, value: answered },
];

function labelsOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

function numberOf(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}
