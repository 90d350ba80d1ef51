/**
 * Lanes that wait to be loaded, each once, in three queues. Taking a batch costs the same however many lanes wait.
 *
 *   urgent       a lane that could send immediately and has nothing in memory
 *   normal       a lane that loads more before it runs out
 *   background   sweeps and full loads
 */
import { UniqueQueue } from '../domain/unique-queue.ts';
import type { Lane } from './lane.ts';

/** What to load: the next deliveries, just committed ones, ones that may have been missed lately, or everything. */
export type LoadScope = 'more' | 'recent' | 'sweep' | 'all';
const BREADTH: Record<LoadScope, number> = { more: 0, recent: 1, sweep: 2, all: 3 };

/** What to load for a lane. The look back starts at `since`, however long the request waits for an earlier read. */
export interface LoadRequest {
  readonly scope: LoadScope;
  readonly since: number;
}

export type Urgency = 'urgent' | 'normal' | 'background';
const RANK: Record<Urgency, number> = { urgent: 0, normal: 1, background: 2 };

export class LoadRequests {
  readonly #requests = new Map<Lane, { request: LoadRequest; urgency: Urgency }>();
  readonly #queues: Record<Urgency, UniqueQueue<Lane>> = {
    urgent: new UniqueQueue(),
    normal: new UniqueQueue(),
    background: new UniqueQueue(),
  };

  /** True if a lane waits in one of these queues. */
  hasAny(urgencies: readonly Urgency[]): boolean {
    return urgencies.some((urgency) => this.#queues[urgency].size > 0);
  }

  /** Adds a request. A lane that waits already is loaded once, with the broader scope and the higher urgency. */
  add(lane: Lane, request: LoadRequest, urgency: Urgency): void {
    const before = this.#requests.get(lane);
    if (before === undefined) {
      this.#requests.set(lane, { request, urgency });
      // A lane that is being read waits until `release`.
      if (!lane.readProgress.isLoading) this.#queues[urgency].add(lane);
      return;
    }
    before.request = merge(before.request, request);
    if (RANK[urgency] >= RANK[before.urgency]) return;
    if (this.#queues[before.urgency].delete(lane)) this.#queues[urgency].add(lane);
    before.urgency = urgency;
  }

  /** Queues the lane if it was requested again while it was being read. Call this when the read has ended. */
  release(lane: Lane): void {
    const waiting = this.#requests.get(lane);
    if (waiting !== undefined) this.#queues[waiting.urgency].add(lane);
  }

  /** Removes and returns the next lane of the first of these queues that is not empty. */
  take(urgencies: readonly Urgency[]): [Lane, LoadRequest] | undefined {
    for (const urgency of urgencies) {
      const queue = this.#queues[urgency];
      for (let lane = queue.shift(); lane !== undefined; lane = queue.shift()) {
        const { request } = this.#requests.get(lane)!;
        this.#requests.delete(lane);
        if (!lane.isClosed) return [lane, request];
      }
    }
    return undefined;
  }

  clear(): void {
    this.#requests.clear();
    for (const queue of Object.values(this.#queues)) queue.clear();
  }
}

function merge(before: LoadRequest, request: LoadRequest): LoadRequest {
  const scope = BREADTH[before.scope] < BREADTH[request.scope] ? request.scope : before.scope;
  return { scope, since: Math.min(before.since, request.since) };
}
