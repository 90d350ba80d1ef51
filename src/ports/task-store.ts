/** Background tasks over many deliveries (bulk replay, bulk discard). All progress is in the store. */
import type { Uuid } from '../domain/ids.ts';

export interface ClaimedTask {
  readonly id: Uuid;
  readonly runner: Uuid;
}

export interface ChunkResult {
  /** False: the task has ended, was cancelled, or another runner has it. */
  readonly isRunning: boolean;
  /** True: there was nothing to do for now. Other tasks get their turn first. */
  readonly isWaiting: boolean;
  /** Endpoints that have something to send now, or whose lane is no longer blocked. */
  readonly endpointIds: readonly Uuid[];
}

export interface TaskStore {
  /**
   * Claims a task without a runner, or one whose runner has been silent for `silentMs` or has its last heartbeat in the
   * future, because the store's clock stepped back. Tenants take turns: the next one is the tenant that has waited longest
   * for a turn, and of its tasks the one that has waited longest. Tasks without a tenant share a turn.
   */
  claim(runner: Uuid, silentMs: number): Promise<ClaimedTask | null>;
  /** Works on the next chunk and records the progress in the same commit. A replay begins at `now`, or at the store's time if it is later. */
  runChunk(task: ClaimedTask, maxDeliveries: number, now?: number): Promise<ChunkResult>;
  /** Gives the task back, so that other tasks get their turn. */
  release(task: ClaimedTask): Promise<void>;
  fail(task: ClaimedTask, reason: string): Promise<void>;
}
