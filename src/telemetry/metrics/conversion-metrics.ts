import { type AsPublishedReason, asPublishedReasons } from '../../domain/version-pins.ts';
import type { Source } from './metrics.ts';

const results = ['converted', 'failed', 'reused'] as const;
type Result = (typeof results)[number];

/** Counts conversions of payloads to the versions that endpoints pin. */
export class ConversionMetrics {
  readonly #results = new Map<Result, number>(results.map((result) => [result, 0]));
  readonly #asPublished = new Map<AsPublishedReason, number>(asPublishedReasons.map((reason) => [reason, 0]));
  #seconds = 0;

  onConverted(result: Result, durationMs: number): void {
    this.#results.set(result, this.#results.get(result)! + 1);
    this.#seconds += durationMs / 1000;
  }

  onAsPublished(reason: AsPublishedReason): void {
    this.#asPublished.set(reason, this.#asPublished.get(reason)! + 1);
  }

  readonly source: Source = (add) => {
    // Report zeros too: Prometheus does not count the first sample of a series as an increase.
    for (const [result, count] of this.#results) add('posthorn_conversions_total', count, { result });
    for (const [reason, count] of this.#asPublished) add('posthorn_as_published_total', count, { reason });
    add('posthorn_conversion_seconds_total', this.#seconds);
  };
}
