import type { HealthChange } from '../ports/delivery-queue.ts';

/** Returns the later change of an endpoint's health, with the later of both holds. If the later change is only a hold, the rest comes from the earlier one. */
export function combineHealth(earlier: HealthChange, later: HealthChange): HealthChange {
  const holdUntil = Math.max(earlier.holdUntil ?? 0, later.holdUntil ?? 0) || null;
  const latestHold = later.latestHold ?? earlier.latestHold;
  return {
    ...(later.breaker === null ? earlier : later),
    holdUntil,
    ...(latestHold !== undefined && { latestHold }),
  };
}
