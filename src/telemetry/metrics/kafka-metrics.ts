import type { Source } from './metrics.ts';

/** Counts the Kafka records that this process has handled, by topic. */
export class KafkaMetrics {
  readonly #stored = new Map<string, number>();
  readonly #rejected = new Map<string, number>();

  /** The counts of the accept topic. Null: this process does not write to it. */
  acceptLog: { readonly confirmed: number; readonly failures: number } | null = null;

  /** Topics are settings, so their number is bounded. */
  constructor(topics: readonly string[]) {
    for (const topic of topics) {
      this.#stored.set(topic, 0);
      this.#rejected.set(topic, 0);
    }
  }

  onStored(topic: string, records: number): void {
    this.#stored.set(topic, (this.#stored.get(topic) ?? 0) + records);
  }

  onRejected(topic: string): void {
    this.#rejected.set(topic, (this.#rejected.get(topic) ?? 0) + 1);
  }

  readonly source: Source = (add) => {
    for (const [topic, count] of this.#stored)
      add('posthorn_kafka_records_total', count, { topic, result: 'stored' });
    for (const [topic, count] of this.#rejected)
      add('posthorn_kafka_records_total', count, { topic, result: 'rejected' });
    if (this.acceptLog === null) return;
    add('posthorn_accept_log_events_total', this.acceptLog.confirmed);
    add('posthorn_accept_log_failures_total', this.acceptLog.failures);
  };
}
