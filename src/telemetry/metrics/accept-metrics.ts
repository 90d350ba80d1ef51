import { type ProblemCode, problemCodes } from '../../domain/problem.ts';
import { ByEventType } from './event-types.ts';
import type { Source } from './metrics.ts';

/** Counts accepted events and rejected requests. */
export class AcceptMetrics {
  readonly #byType: ByEventType<{ accepted: number; flagged: number; refused: number }>;
  readonly #rejected = new Map<ProblemCode, number>(
    (Object.keys(problemCodes) as ProblemCode[]).map((code) => [code, 0]),
  );
  #repeated = 0;
  #unreadAnswers = 0;
  #unmatched = 0;
  #deliveries = 0;
  #rematched = 0;

  constructor(options: { readonly eventTypes: number }) {
    this.#byType = new ByEventType(options.eventTypes, () => ({
      accepted: 0,
      flagged: 0,
      refused: 0,
    }));
  }

  onAccepted(eventType: string, deliveries: number): void {
    this.#byType.of(eventType).accepted += 1;
    this.#deliveries += deliveries;
    if (deliveries === 0) this.#unmatched += 1;
  }

  /** A payload did not match its schema. */
  onSchemaFailed(eventType: string, result: 'flagged' | 'refused'): void {
    this.#byType.of(eventType)[result] += 1;
  }

  onRepeated(): void {
    this.#repeated += 1;
  }

  onRematched(): void {
    this.#rematched += 1;
  }

  onRejected(code: ProblemCode): void {
    this.#rejected.set(code, this.#rejected.get(code)! + 1);
  }

  /** Connections were closed because their clients did not read the answer. */
  onUnreadClosed(count: number): void {
    this.#unreadAnswers += count;
  }

  readonly source: Source = (add) => {
    for (const [event_type, { accepted, flagged, refused }] of this.#byType.entries()) {
      add('posthorn_events_accepted_total', accepted, { event_type });
      if (flagged > 0) add('posthorn_schema_failures_total', flagged, { event_type, result: 'flagged' });
      if (refused > 0) add('posthorn_schema_failures_total', refused, { event_type, result: 'refused' });
    }
    add('posthorn_events_repeated_total', this.#repeated);
    add('posthorn_events_unmatched_total', this.#unmatched);
    add('posthorn_deliveries_created_total', this.#deliveries);
    add('posthorn_subscription_cache_rematched_total', this.#rematched);
    add('posthorn_unread_answers_total', this.#unreadAnswers);
    // Report zeros too: Prometheus does not count the first sample of a series as an increase.
    for (const [code, count] of this.#rejected) add('posthorn_rejected_total', count, { code });
  };
}
