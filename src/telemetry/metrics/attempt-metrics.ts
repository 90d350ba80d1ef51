import type { WaitingDelivery } from '../../domain/delivery.ts';
import {
  type AttemptOutcome,
  type DeadReason,
  deadReasons,
  type ErrorClass,
  errorClasses,
  type Verdict,
} from '../../domain/outcome.ts';
import { ByEventType } from './event-types.ts';
import { ATTEMPTS, Histogram, LATENCY_SECONDS, RESPONSE_SECONDS } from './histogram.ts';
import type { Source } from './metrics.ts';

interface TypeCounts {
  attempts: number;
  succeeded: number;
  /** By index of the error class. */
  readonly failed: Float64Array;
}

const classes = Object.keys(errorClasses) as ErrorClass[];
const indexOfClass = new Map(classes.map((name, index) => [name, index]));

/** Counts attempts. Runs for every attempt, so it costs only one map lookup and some additions. */
export class AttemptMetrics {
  readonly #byType: ByEventType<TypeCounts>;
  readonly #responseTime = new Histogram(RESPONSE_SECONDS);
  readonly #latency = new Histogram(LATENCY_SECONDS);
  readonly #attempts = new Histogram(ATTEMPTS);
  readonly #dead = new Map<DeadReason, number>(deadReasons.map((reason) => [reason, 0]));
  #delivered = 0;
  #retried = 0;

  constructor(options: { readonly eventTypes: number }) {
    this.#byType = new ByEventType(options.eventTypes, () => ({
      attempts: 0,
      succeeded: 0,
      failed: new Float64Array(classes.length),
    }));
  }

  onAnswered(eventType: string, delivery: WaitingDelivery, outcome: AttemptOutcome, verdict: Verdict): void {
    const counts = this.#byType.of(eventType);
    counts.attempts += 1;
    if (verdict.kind === 'delivered') {
      counts.succeeded += 1;
      this.#latency.observe(Math.max(0, outcome.startedAt + outcome.durationMs - delivery.agesFrom) / 1000);
    } else {
      counts.failed[indexOfClass.get(outcome.error?.class ?? 'internal')!]! += 1;
    }
    if (verdict.kind !== 'retry')
      this.#attempts.observe(delivery.attempts + 1 - delivery.attemptsBeforeReplay);
    // A request without a response has no response time, unless it timed out.
    if (outcome.statusCode !== null || outcome.error?.class === 'timeout')
      this.#responseTime.observe(outcome.durationMs / 1000);
  }

  /** Also counts deliveries that die without another attempt. */
  onSettling(verdict: Verdict): void {
    if (verdict.kind === 'delivered') this.#delivered += 1;
    else if (verdict.kind === 'retry') this.#retried += 1;
    else this.#dead.set(verdict.reason, this.#dead.get(verdict.reason)! + 1);
  }

  readonly source: Source = (add) => {
    for (const [event_type, { attempts, succeeded, failed }] of this.#byType.entries()) {
      add('posthorn_attempts_total', attempts, { event_type });
      add('posthorn_attempts_succeeded_total', succeeded, { event_type });
      for (const [index, reason] of classes.entries())
        if (failed[index]! > 0) add('posthorn_attempts_failed_total', failed[index]!, { event_type, reason });
    }
    add.histogram('posthorn_response_time_seconds', this.#responseTime);
    add.histogram('posthorn_delivery_latency_seconds', this.#latency);
    add.histogram('posthorn_attempts_per_delivery', this.#attempts);
    add('posthorn_deliveries_delivered_total', this.#delivered);
    add('posthorn_deliveries_retried_total', this.#retried);
    for (const [reason, count] of this.#dead) add('posthorn_deliveries_dead_total', count, { reason });
  };
}
