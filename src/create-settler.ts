/** The part of the engine that records results. Its commits count as load of the process. */
import type { EngineConfig, EnginePorts, EngineStages } from './create-engine.ts';
import type { Ownership, WorkProgress } from './dispatch/index.ts';
import type { DatabaseClock } from './domain/clock.ts';
import type { LoadMeter } from './domain/load-meter.ts';
import { Settler } from './settle/index.ts';

export function createSettler(
  { queue, clock }: EnginePorts,
  { tail, onBatchWritten, onProblem }: EngineStages,
  config: EngineConfig,
  parts: { readonly progress: WorkProgress; readonly ownership: Ownership; readonly load: LoadMeter },
): Settler {
  return new Settler({
    sink: parts.progress.watchResults(queue),
    clock,
    batchRows: config.settleBatchRows,
    lingerMs: config.settleLingerMs,
    worker: parts.ownership,
    tail,
    onBatchWritten(items, waitedMs, tookMs) {
      parts.load.use();
      parts.load.recordCommit(tookMs);
      onBatchWritten?.(items, waitedMs, tookMs);
    },
    onProblem,
  });
}

/** Resolves when all results are recorded, or after `ms`. */
export function waitUntilIdleWithin(settler: Settler, clock: DatabaseClock, ms: number): Promise<void> {
  return Promise.race([settler.waitUntilIdle(), new Promise<void>((resolve) => clock.after(ms, resolve))]);
}
