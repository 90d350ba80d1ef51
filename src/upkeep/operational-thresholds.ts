/** Levels of the whole deployment. Each is reported when the value reaches it, and again when the value has fallen below half of it. */
import type { Clock } from '../domain/clock.ts';
import { type OperationalType, operationalTypes } from '../domain/operational.ts';
import type { OperationalRound } from '../ports/operational-store.ts';
import {
  archivePayload,
  deadLettersPayload,
  queueAgePayload,
  type ThresholdCrossing,
} from './operational-payloads.ts';

export interface ThresholdOptions {
  readonly clock: Clock;
  readonly deadLettersThreshold: number;
  readonly queueAgeThresholdMs: number;
  readonly publicUrl: string;
}

/** An operational event without its receivers. */
export interface OperationalReport {
  readonly type: OperationalType;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Dead letters are counted up to this many times the threshold. */
const COUNT_FACTOR = 10;
const WHOLE_DEPLOYMENT = '';

/** Returns the thresholds of these types that were crossed since the last check. */
export async function checkThresholds(
  round: OperationalRound,
  types: readonly OperationalType[],
  { clock, publicUrl, deadLettersThreshold, queueAgeThresholdMs }: ThresholdOptions,
): Promise<OperationalReport[]> {
  const crossed: OperationalReport[] = [];
  for (const type of types) {
    if (type === operationalTypes.deadLettersThreshold) {
      const count = await round.countDeadLetters(deadLettersThreshold * COUNT_FACTOR);
      const crossing = await checkThreshold(round, type, deadLettersThreshold, count);
      if (crossing !== null)
        crossed.push({ type, data: deadLettersPayload(crossing, clock.now(), publicUrl) });
    } else if (type === operationalTypes.queueAge) {
      const oldest = await round.findOldestWaiting();
      const ageMs = oldest === null ? 0 : Math.max(0, clock.now() - oldest.since);
      const crossing = await checkThreshold(round, type, queueAgeThresholdMs, ageMs);
      if (crossing !== null)
        crossed.push({ type, data: queueAgePayload(crossing, oldest, clock.now(), publicUrl) });
    } else if (type === operationalTypes.archiveFailed) {
      const failure = await round.readArchiveFailure();
      const crossing = await checkThreshold(round, type, 1, failure === null ? 0 : 1);
      if (crossing !== null) crossed.push({ type, data: archivePayload(failure, clock.now()) });
    }
  }
  return crossed;
}

async function checkThreshold(
  round: OperationalRound,
  type: OperationalType,
  threshold: number,
  value: number,
): Promise<ThresholdCrossing | null> {
  const wasAbove = await round.hasState(type, WHOLE_DEPLOYMENT);
  if (!wasAbove && value >= threshold) {
    await round.setStates(type, [WHOLE_DEPLOYMENT]);
    return { state: 'above', threshold, value };
  }
  if (wasAbove && value < threshold / 2) {
    await round.clearState(type, WHOLE_DEPLOYMENT);
    return { state: 'below', threshold, value };
  }
  return null;
}
