import type { Uuid } from './ids.ts';
import type { Trigger } from './outcome.ts';

export const deliveryStatuses = ['pending', 'retrying', 'delivered', 'dead', 'discarded', 'skipped'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** A delivery that waits, as the engine holds it in a lane: ids and numbers only, the payload stays elsewhere. */
export interface WaitingDelivery {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  /** Order of acceptance, from one sequence of the database. */
  readonly seq: number;
  /** Requests made in all: the number in the log, and the fence of a settle. */
  readonly attempts: number;
  /** Of those, the ones made before the last replay: the schedule starts again after them. */
  readonly attemptsBeforeReplay: number;
  /** Null: due since it was accepted, never tried. */
  readonly dueAt: number | null;
  /** When its age began: accepted or last replayed. */
  readonly agesFrom: number;
  readonly trigger: Trigger;
  /** Why it is tried again: the error class of the last attempt. */
  readonly lastErrorClass: string | null;
}
