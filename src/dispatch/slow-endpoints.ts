/** Connects the adaptive limits of an endpoint (src/domain/adaptive-limits.ts) with its lane and with the store. */
import { AdaptiveLimits, type AdaptiveRecord, type AnswerKind } from '../domain/adaptive-limits.ts';
import type { Signal } from '../domain/breaker.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { newId } from '../domain/ids.ts';
import { noteOfLimits } from '../domain/operational.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';

/** The limits of a lane that this worker opens. */
export function createLimits({ isAdaptive }: Endpoint, stored: AdaptiveRecord | null = null): AdaptiveLimits {
  const limits = new AdaptiveLimits(stored);
  if (!isAdaptive) limits.reset();
  return limits;
}

/** True if what was learned about the endpoint no longer applies. */
export function areLimitsOutdated(before: Endpoint, after: Endpoint): boolean {
  return (['isAdaptive', 'maxInFlight', 'timeoutMs', 'url'] as const).some(
    (key) => before[key] !== after[key],
  );
}

/** The deadline of the next request. Undefined: the full one. A probe must find out whether the receiver answers at all. */
export function chooseTimeout(lane: Lane, item: LaneItem): number | undefined {
  item.timeoutMs = item.isProbe || item.isRequested ? undefined : lane.adaptive.nextTimeoutMs();
  return item.timeoutMs;
}

/** Updates the limits after an answer. Returns true if they have changed. Call it while the item is in flight. */
export function updateLimits(
  lane: Lane,
  item: LaneItem,
  outcome: AttemptOutcome,
  signal: Signal,
  now: number,
): boolean {
  const kind = kindOf(outcome, signal);
  if (!lane.endpoint.isAdaptive || kind === null) return false;
  const start = lane.responseTimes.startOf(item);
  return lane.adaptive.recordAnswer(
    {
      kind,
      startedAt: start?.at ?? outcome.startedAt,
      durationMs: outcome.durationMs,
      hadFullDeadline: item.timeoutMs === undefined,
      wasFull: start?.wasFull ?? false,
    },
    lane.endpoint,
    now,
  );
}

/** Null: the outcome says nothing about how fast the receiver is. */
function kindOf({ statusCode, error }: AttemptOutcome, signal: Signal): AnswerKind | null {
  if (error?.class === 'timeout') return 'timeout';
  if (statusCode === null) return null;
  if (signal === 'success') return 'success';
  return signal === 'failure' || statusCode === 429 ? 'failure' : 'rejected';
}

/** Marks the limits as stored. Returns what to store with them, or null if they have not changed since the last call. */
export function takeLimitChange(
  { adaptive, endpoint }: Lane,
  eventType: string,
  now: number,
): Pick<HealthChange, 'limitNote'> | null {
  const change = adaptive.unstored;
  if (change === null) return null;
  adaptive.markStored();
  const note = noteOfLimits({ id: newId(now), eventType, endpoint, ...change });
  return note === null ? {} : { limitNote: note };
}
