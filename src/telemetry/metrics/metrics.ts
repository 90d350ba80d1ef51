/**
 * What `/metrics` shows. Nothing is counted here: whoever counts does so in plain numbers of its own, and adds a source
 * that reads them out when somebody asks. So a scrape costs microseconds, and nothing at all happens without one.
 *
 *   metrics.addSource((add) => add('posthorn_shards_owned', ownership.ownedShards));
 */
import type { MetricName } from './catalogue.ts';
import type { Labels, Sample } from './exposition.ts';
import type { Histogram } from './histogram.ts';

export interface Add {
  (name: MetricName, value: number, labels?: Labels): void;
  histogram(name: MetricName, histogram: Histogram, labels?: Labels): void;
}

/** Called at every scrape: it may read memory, and neither waits nor asks the database. */
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
