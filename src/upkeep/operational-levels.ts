/** Two levels, each told of when it is passed and when it has fallen to half: between the two nothing is said. */
import type { Clock } from '../domain/clock.ts';
import { type OperationalType, operationalTypes } from '../domain/operational.ts';
import type { Client } from '../postgres/database.ts';
import { clearState, hasState, setState } from '../postgres/queries/operational-events.ts';
import { deadLettersUpTo, oldestWaiting } from '../postgres/queries/operational-levels.ts';
import { deadLettersPayload, type Level, queueAgePayload } from './operational-payloads.ts';

export interface LevelOptions {
  readonly clock: Clock;
  readonly deadLettersThreshold: number;
  readonly queueAgeThresholdMs: number;
  readonly publicUrl: string;
}

const COUNTED_TO = 10;
const EVERYTHING = '';

export async function checkLevels(
  client: Client,
  types: readonly OperationalType[],
  options: LevelOptions,
): Promise<{ type: OperationalType; data: Readonly<Record<string, unknown>> }[]> {
  const { clock, publicUrl } = options;
  const passed: { type: OperationalType; data: Readonly<Record<string, unknown>> }[] = [];
  for (const type of types) {
    if (type === operationalTypes.deadLettersThreshold) {
      const threshold = options.deadLettersThreshold;
      const level = await newsOf(
        client,
        type,
        threshold,
        await deadLettersUpTo(client, threshold * COUNTED_TO),
      );
      if (level !== null) passed.push({ type, data: deadLettersPayload(level, clock.now(), publicUrl) });
    } else if (type === operationalTypes.queueAge) {
      const oldest = await oldestWaiting(client);
      const ageMs = oldest === null ? 0 : Math.max(0, clock.now() - oldest.since);
      const level = await newsOf(client, type, options.queueAgeThresholdMs, ageMs);
      if (level !== null) passed.push({ type, data: queueAgePayload(level, oldest, clock.now(), publicUrl) });
    }
  }
  return passed;
}

async function newsOf(
  client: Client,
  type: OperationalType,
  threshold: number,
  value: number,
): Promise<Level | null> {
  const wasAbove = await hasState(client, type, EVERYTHING);
  if (!wasAbove && value >= threshold) {
    await setState(client, type, [EVERYTHING]);
    return { state: 'above', threshold, value };
  }
  if (wasAbove && value < threshold / 2) {
    await clearState(client, type, EVERYTHING);
    return { state: 'below', threshold, value };
  }
  return null;
}
