import { BATCH_ITEMS, COMMIT_SECONDS, Histogram } from './histogram.ts';
import type { Source } from './metrics.ts';

/** Measures the commits of one stage that writes in batches. */
export class CommitMetrics {
  readonly #stage: 'accept' | 'settle';
  readonly #items = new Histogram(BATCH_ITEMS);
  readonly #wait = new Histogram(COMMIT_SECONDS);
  readonly #duration = new Histogram(COMMIT_SECONDS);

  constructor(stage: 'accept' | 'settle') {
    this.#stage = stage;
  }

  readonly written = (items: number, waitedMs: number, tookMs: number): void => {
    this.#items.observe(items);
    this.#wait.observe(waitedMs / 1000);
    this.#duration.observe(tookMs / 1000);
  };

  readonly source: Source = (add) => {
    const labels = { stage: this.#stage };
    add.histogram('posthorn_commit_items', this.#items, labels);
    add.histogram('posthorn_commit_wait_seconds', this.#wait, labels);
    add.histogram('posthorn_commit_duration_seconds', this.#duration, labels);
  };
}
