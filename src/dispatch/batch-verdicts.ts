/**
 * Decides what happens to each event of a batch after its request. Pure.
 *
 *   2xx                          delivered; events that a batch result names: retry
 *   413, or rejected (4xx)       retry in two halves at once, until the rejected event is alone. Does not count as an attempt
 *   other failure                retry of the same batch; if not all of its events are retried, the rest form a new batch
 *   410, last attempt, too old   dead
 */
import { type BatchSettings, readBatchResult } from '../domain/batch.ts';
import { type DecideContext, decide, isSuccess } from '../domain/decide.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { eventIdOfDelivery, type Uuid } from '../domain/ids.ts';
import type { AttemptOutcome, ErrorClass, Verdict } from '../domain/outcome.ts';
import type { RetryPolicy } from '../domain/retry.ts';

export interface EventVerdict {
  /** The outcome of the request as it is recorded for this event. */
  readonly outcome: AttemptOutcome;
  readonly verdict: Verdict;
  /** The batch that a retried delivery belongs to. Null: the next batch may take it. */
  readonly batchId: Uuid | null;
}

export interface BatchContext extends DecideContext {
  readonly policy: RetryPolicy;
  /** Null: the setting was removed while the request was on the wire. */
  readonly settings: BatchSettings | null;
  readonly newId: () => Uuid;
}

const TOO_LARGE = 413;
/** Every event of a batch gets the start of the answer. The first one gets as much as events that are sent alone. */
const MAX_FIRST_BODY_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 1024;

/** Returns one verdict per delivery, in their order. */
export function decideBatch(
  batchId: Uuid,
  deliveries: readonly WaitingDelivery[],
  outcome: AttemptOutcome,
  context: BatchContext,
): EventVerdict[] {
  // One random delay for all events of a batch, so that they stay together.
  const draw = context.random();
  const shared: DecideContext = { ...context, random: () => draw };
  const outcomes = outcomesOf(deliveries, outcome);
  const verdicts = deliveries.map((delivery, index) =>
    decide(outcomes[index]!, delivery, context.policy, shared),
  );
  if (deliveries.length > 1 && isSplit(outcome, verdicts[0]!, context))
    return splitInHalves(outcomes, context);
  const retries = verdicts.filter((verdict) => verdict.kind === 'retry');
  const isUnchanged = retries.length === verdicts.length;
  const dueAt = Math.max(...retries.map((retry) => retry.dueAt));
  return verdicts.map((verdict, index) => ({
    outcome: outcomes[index]!,
    verdict: verdict.kind === 'retry' ? { ...verdict, dueAt } : verdict,
    batchId: verdict.kind === 'retry' && isUnchanged ? batchId : null,
  }));
}

function isSplit({ statusCode }: AttemptOutcome, verdict: Verdict, { settings }: BatchContext): boolean {
  if (settings === null) return false;
  if (statusCode === TOO_LARGE) return true;
  return settings.splitRejected && verdict.kind === 'dead' && verdict.reason === 'rejected';
}

function splitInHalves(outcomes: readonly AttemptOutcome[], { now, newId }: BatchContext): EventVerdict[] {
  const middle = Math.ceil(outcomes.length / 2);
  const halves = [newId(), newId()] as const;
  return outcomes.map((outcome, index) => ({
    outcome,
    verdict: { kind: 'retry', dueAt: now, isUncounted: true },
    batchId: halves[index < middle ? 0 : 1],
  }));
}

/** Events with the same result share one outcome: the store writes it once. */
function outcomesOf(deliveries: readonly WaitingDelivery[], outcome: AttemptOutcome): AttemptOutcome[] {
  const { statusCode } = outcome;
  const failed = statusCode !== null && isSuccess(statusCode) ? readBatchResult(outcome) : NO_EVENTS;
  const first = outcomesFor(withBody(outcome, MAX_FIRST_BODY_BYTES), failed);
  const others = outcomesFor(withBody(outcome, MAX_BODY_BYTES), failed);
  const isNamed = ({ id }: WaitingDelivery): boolean =>
    failed !== null && failed.size > 0 && failed.has(eventIdOfDelivery(id));
  return deliveries.map((delivery, index) => {
    const { usual, named } = index === 0 ? first : others;
    return isNamed(delivery) ? named : usual;
  });
}

const NO_EVENTS: ReadonlySet<Uuid> = new Set();

/** The outcome of events that the batch result names, and of the others. `failed` null: it cannot be read. */
function outcomesFor(
  shown: AttemptOutcome,
  failed: ReadonlySet<Uuid> | null,
): { readonly usual: AttemptOutcome; readonly named: AttemptOutcome } {
  if (failed === null)
    return {
      usual: withError(shown, 'batch_result_invalid', 'The batch result cannot be read.'),
      named: shown,
    };
  const message = 'The receiver reported that this event of the batch failed.';
  return { usual: shown, named: withError(shown, 'batch_event_failed', message) };
}

const withError = (outcome: AttemptOutcome, errorClass: ErrorClass, message: string): AttemptOutcome => ({
  ...outcome,
  error: { class: errorClass, message },
});

function withBody(outcome: AttemptOutcome, maxBytes: number): AttemptOutcome {
  const { responseBody } = outcome;
  if (responseBody === null || responseBody.length <= maxBytes) return outcome;
  return { ...outcome, responseBody: responseBody.subarray(0, maxBytes), responseTruncated: true };
}
