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
