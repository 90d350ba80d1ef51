/**
 * Brings waiting deliveries from PostgreSQL into lanes that have room. Many lanes share a round trip; one read is
 * under way at a time, and whatever asks meanwhile goes into the next.
 *
 * Numbers of the order are given out before the commit, so a row may appear "behind" ones that are known already.
 * The reader therefore looks back as far as a commit can reasonably take; the sweep looks back further; and a lane
 * that is new, or strictly ordered, is read from the bottom.
 */
import type { Clock } from '../domain/clock.ts';
import type { Pool } from '../store/database.ts';
import {
  type LaneAnswer,
  type LaneRequest,
  type LoadedDelivery,
  loadLanes,
} from '../store/queries/load-lanes.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface RefillOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly laneItems: number;
  /** How many more deliveries may be held in memory in all. */
  readonly room: () => number;
  /** Something new is in these lanes. */
  readonly filled: (lanes: readonly Lane[]) => void;
  readonly failed: (error: unknown) => void;
}

const LANES_PER_READ = 200;
export const LOOK_BACK_MS = 2_000;
const SWEEP_LOOK_BACK_MS = 60_000;
const RETRY_PAUSE_MS = 200;
/** Extra time for a request whose worker died: its deadline, and a little for the way. */
const ON_THE_WIRE_MARGIN_MS = 500;

/** What to read: what comes next, what was just accepted, what may have been missed lately, everything. */
export type Want = 'more' | 'recent' | 'sweep' | 'bottom';
const BREADTH: Record<Want, number> = { more: 0, recent: 1, sweep: 2, bottom: 3 };

export class Refill {
  readonly #options: RefillOptions;
  #wanted = new Map<Lane, Want>();
  #running: Promise<void> | null = null;
  /** Where the order stood at past moments, oldest first. */
  readonly #marks: { at: number; seq: number }[] = [];
  #stopped = false;

  constructor(options: RefillOptions) {
    this.#options = options;
  }

  /** The order stood at `seq` just now. */
  mark(seq: number): void {
    const at = this.#options.clock.monotonic();
    this.#marks.push({ at, seq });
    while (this.#marks.length > 2 && this.#marks[1]!.at < at - SWEEP_LOOK_BACK_MS) this.#marks.shift();
  }

  want(lane: Lane, want: Want): void {
    if (this.#stopped || lane.closed) return;
    const before = this.#wanted.get(lane);
    if (before === undefined || BREADTH[before] < BREADTH[want]) this.#wanted.set(lane, want);
    this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wanted.clear();
    await this.#running;
  }

  #run(): void {
    if (this.#running !== null || this.#wanted.size === 0 || this.#stopped) return;
    this.#running = this.#readOnce()
      .catch(async (error) => {
        this.#options.failed(error);
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_PAUSE_MS, resolve));
      })
      .finally(() => {
        this.#running = null;
        this.#run();
      });
  }

  async #readOnce(): Promise<void> {
    const batch = [...this.#wanted].slice(0, LANES_PER_READ).filter(([lane]) => !lane.closed);
    for (const [lane] of [...this.#wanted].slice(0, LANES_PER_READ)) this.#wanted.delete(lane);
    if (batch.length === 0) return;
    const limit = Math.max(
      1,
      Math.min(this.#options.laneItems, Math.ceil(this.#options.room() / batch.length)),
    );
    const requests = batch.map(([lane, want]) => this.#request(lane, want, limit));
    for (const [lane] of batch) lane.loadStarted();
    try {
      const answers = await loadLanes(this.#options.pool, requests);
      for (const [index, [lane]] of batch.entries())
        this.#fill(lane, requests[index]!, answers.get(lane.id)!);
    } catch (error) {
      for (const [lane, want] of batch) if (!this.#wanted.has(lane)) this.#wanted.set(lane, want);
      throw error;
    } finally {
      for (const [lane] of batch) lane.loadEnded();
    }
    // Only now: a lane that missed something meanwhile asks again, and one that is still loading does not ask.
    this.#options.filled(batch.map(([lane]) => lane));
  }

  #request(lane: Lane, want: Want, limit: number): LaneRequest {
    const now = this.#options.clock.now();
    const next = lane.moreFresh ? lane.freshCursor : Number.POSITIVE_INFINITY;
    // Known ones come back too: ask for enough to get past them.
    const max = limit + lane.size;
    const bottom = { endpointId: lane.id, freshAfter: 0, dueFrom: lane.fifo ? null : 0, limit: max };
    if (lane.fifo || want === 'bottom') return bottom;
    switch (want) {
      case 'more':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS)),
          dueFrom: lane.retryHorizon,
        };
      case 'recent':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS)),
          dueFrom: Math.min(lane.retryHorizon, now - LOOK_BACK_MS),
        };
      case 'sweep':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(SWEEP_LOOK_BACK_MS)),
          dueFrom: Math.min(lane.retryHorizon, now - SWEEP_LOOK_BACK_MS),
        };
    }
  }

  /** Where the order stood that long ago; 0 (the bottom) if that is not known. */
  seqBefore(ms: number): number {
    const at = this.#options.clock.monotonic() - ms;
    let seq = 0;
    for (const mark of this.#marks) {
      if (mark.at > at) break;
      seq = mark.seq;
    }
    return seq;
  }

  #fill(lane: Lane, request: LaneRequest, answer: LaneAnswer): void {
    if (lane.closed) return;
    for (const row of answer.fresh) lane.addFresh(toItem(row, lane));
    if (request.freshAfter !== null) {
      lane.freshRead(answer.fresh.at(-1)?.seq ?? request.freshAfter, answer.fresh.length < request.limit);
    }
    for (const row of answer.due) lane.addRetry(toItem(row, lane));
    if (request.dueFrom !== null) {
      lane.retriesRead(request.dueFrom, answer.due.at(-1)?.dueAt ?? 0, answer.due.length < request.limit);
    }
  }
}

function toItem(row: LoadedDelivery, lane: Lane): LaneItem {
  return {
    delivery: row,
    event: null,
    state: 'queued',
    probe: false,
    notBefore: row.startedAt === null ? 0 : row.startedAt + lane.endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS,
    carefulStarts: row.carefulStarts,
  };
}
