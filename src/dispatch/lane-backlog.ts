import type { LaneQueue } from './lane-queue.ts';

/** The queued deliveries of a lane in memory. */
export interface LaneBacklog {
  /** True if no more deliveries wait in the store. */
  readonly isComplete: boolean;
  readonly fresh: number;
  readonly retries: number;
  /** When the age of the oldest fresh delivery began. Infinity if nothing waits. */
  readonly oldestFresh: number;
  /** When the first retry is or was due. Infinity if nothing waits. */
  readonly firstDue: number;
  /** FIFO: the head's retry blocks the rest of the lane. */
  readonly isBlockedByHead: boolean;
}

export function backlogOf({ fifo, fresh, retries, requested, readProgress }: LaneQueue): LaneBacklog {
  const { head } = fresh;
  return {
    isComplete: fifo ? !readProgress.hasMoreFresh : readProgress.isComplete,
    fresh: fresh.size,
    retries: retries.size + (requested === null ? 0 : 1),
    oldestFresh: head?.delivery.agesFrom ?? Number.POSITIVE_INFINITY,
    firstDue: retries.firstDueAt,
    isBlockedByHead: fifo && head !== undefined && head.delivery.attempts > 0,
  };
}
