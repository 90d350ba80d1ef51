import type { Uuid } from './ids.ts';
import type { Trigger } from './outcome.ts';

export const deliveryStatuses = ['pending', 'retrying', 'delivered', 'dead', 'discarded', 'skipped'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** A delivery that has not ended. It has no payload: that belongs to the event. */
export interface WaitingDelivery {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  /** Order of acceptance, from one sequence of the database. */
  readonly seq: number;
  /** All requests made so far. A settlement applies only if this has not changed. */
  readonly attempts: number;
  /** Requests made before the last replay. The retry schedule starts again after them. */
  readonly attemptsBeforeReplay: number;
  /** Null: due since it was accepted, and never attempted. */
  readonly dueAt: number | null;
  /** When its age began: accepted or last replayed. */
  readonly agesFrom: number;
  readonly trigger: Trigger;
  /** The error class of the last attempt. */
  readonly lastErrorClass: string | null;
  /** The batch that it belongs to since its last attempt. Null or absent: the next batch may take it. */
  readonly batchId?: Uuid | null;
}
