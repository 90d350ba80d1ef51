import { CLOSED_BREAKER } from '../domain/breaker.ts';
import type { LaneState } from '../ports/delivery-queue.ts';

/** The state of an endpoint that has never failed. */
export const HEALTHY: LaneState = {
  breaker: CLOSED_BREAKER,
  failingSince: null,
  blocked: false,
  isNew: false,
};
