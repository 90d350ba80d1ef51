import type { HealthChange } from '../ports/delivery-queue.ts';

/** The later change of an endpoint's health, with the later hold. A change of only the hold keeps the rest of the earlier one. */
export function combineHealth(earlier: HealthChange, later: HealthChange): HealthChange {
  const holdUntil = Math.max(earlier.holdUntil ?? 0, later.holdUntil ?? 0) || null;
  const latestHold = later.latestHold ?? earlier.latestHold;
  return {
    ...(later.breaker === null ? earlier : later),
    holdUntil,
    ...(latestHold !== undefined && { latestHold }),
  };
}
