import type { Lane } from './lane.ts';
import type { LaneQueue } from './lane-queue.ts';

/**
 * Moves the times of a lane after the clock was set by `stepMs`, so that everything in the lane waits as long as
 * before.
 */
export function stepClock(lane: Lane, queue: LaneQueue, stepMs: number): void {
  if (lane.holdUntil > 0) lane.holdUntil += stepMs;
  lane.earlierRequestsUntil += stepMs;
  lane.readProgress.takenOverAt += stepMs;
  if (lane.failingSince !== null) lane.failingSince += stepMs;
  lane.breaker.onClockStepped(stepMs);
  lane.responseTimes.onClockStepped(stepMs);
  queue.onClockStepped(stepMs);
  // Due times that were set before the step may lie far in the future. They are corrected when they are loaded again.
  if (stepMs < 0) queue.clear();
}
