import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { eventIdOfDelivery, publicId } from '../domain/ids.ts';
import type { AttemptOutcome, Verdict } from '../domain/outcome.ts';
import type { Log } from './log.ts';

/** One wide line per attempt: everything needed to answer "what happened", and no payload. */
export function logAttempt(
  log: Log,
  endpoint: Endpoint,
  delivery: WaitingDelivery,
  outcome: AttemptOutcome,
  verdict: Verdict,
): void {
  const failed = verdict.kind !== 'delivered';
  // `internal` is for the operator to fix, not for the receiver.
  const level = outcome.error?.class === 'internal' ? 'error' : failed ? 'info' : 'debug';
  if (!log.isLevelEnabled(level)) return;
  const line = {
    delivery_id: publicId('dlv', delivery.id),
    event_id: publicId('evt', eventIdOfDelivery(delivery.id)),
    endpoint_id: publicId('ep', endpoint.id),
    tenant: endpoint.tenant,
    attempt: delivery.attempts + 1,
    trigger: delivery.trigger,
    verdict: verdict.kind,
    reason: verdict.kind === 'dead' ? verdict.reason : undefined,
    next_attempt_at: verdict.kind === 'retry' ? new Date(verdict.dueAt) : undefined,
    status: outcome.statusCode,
    error: outcome.error?.class,
    ms: Math.round(outcome.durationMs),
  };
  log[level](line, failed ? 'attempt failed' : 'attempt delivered');
}
