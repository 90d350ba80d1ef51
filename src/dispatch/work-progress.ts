/** Whether this worker can read waiting deliveries and record results. Its lease alone does not show that. */
import type { Clock } from '../domain/clock.ts';
import { Progress } from '../domain/progress.ts';
import type { LaneReader, SettlementSink } from '../ports/delivery-queue.ts';

export class WorkProgress {
  readonly #reads: Progress;
  readonly #results: Progress;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#reads = new Progress(clock, { needsSubjects: 0 });
    this.#results = new Progress(clock, { needsSubjects: 2 });
  }

  /** How long the worker could not read deliveries, or could not record results. */
  get stalledForMs(): number {
    return Math.max(this.#reads.stalledForMs, this.#results.stalledForMs);
  }

  watchReads(queue: Pick<LaneReader, 'loadLanes'>): Pick<LaneReader, 'loadLanes'> {
    return { loadLanes: (requests) => this.#reads.watch([], () => queue.loadLanes(requests)) };
  }

  watchResults(sink: SettlementSink): SettlementSink {
    return {
      settle: (batch) =>
        this.#results.watch(
          batch.settlements.map(({ endpointId }) => endpointId),
          () => sink.settle(batch),
        ),
    };
  }
}
