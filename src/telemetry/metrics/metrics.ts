/**
 * The metrics of `/metrics`. Nothing is counted here: each module counts in plain numbers and adds a source that reads
 * them at a scrape. So a scrape costs microseconds, and without scrapes there is no cost.
 *
 *   metrics.addSource((add) => add('posthorn_shards_owned', ownership.shardCount));
 */
import type { MetricName } from './catalogue.ts';
import type { Labels, Sample } from './exposition.ts';
import type { Histogram } from './histogram.ts';

export interface Add {
  (name: MetricName, value: number, labels?: Labels): void;
  histogram(name: MetricName, histogram: Histogram, labels?: Labels): void;
}

/** Called at every scrape: it may only read memory, and must not wait or query the database. */
export type Source = (add: Add) => void;

const NO_LABELS: Labels = {};

export class Metrics {
  readonly #sources: Source[] = [];

  addSource(source: Source): void {
    this.#sources.push(source);
  }

  read(): Sample[] {
    const samples: Sample[] = [];
    const add: Add = Object.assign(
      (name: MetricName, value: number, labels = NO_LABELS) => void samples.push({ name, labels, value }),
      {
        histogram: (name: MetricName, histogram: Histogram, labels = NO_LABELS) =>
          addHistogram(samples, name, histogram, labels),
      },
    );
    for (const source of this.#sources) source(add);
    return samples;
  }
}

function addHistogram(samples: Sample[], name: MetricName, histogram: Histogram, labels: Labels): void {
  let count = 0;
  for (const [index, bound] of [...histogram.bounds, Number.POSITIVE_INFINITY].entries()) {
    count += histogram.counts[index]!;
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
    samples.push({ name, suffix: '_bucket', labels: { ...labels, le }, value: count });
  }
  samples.push({ name, suffix: '_sum', labels, value: histogram.sum });
  samples.push({ name, suffix: '_count', labels, value: count });
}
