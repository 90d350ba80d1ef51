/**
 * Brings waiting deliveries from PostgreSQL into lanes that have room. Many lanes share a round trip; one read is
 * under way at a time, and whatever asks meanwhile goes into the next.
 *
 * Numbers of the order are given out before the commit, so a row may appear "behind" ones that are known already.
 * The reader therefore looks back as far as a commit can reasonably take; the sweep looks back further; and a lane
 * that is new, or strictly ordered, is read from the bottom.
 */
import type { Clock } from '../domain/clock.ts';
import type { LaneReader, LaneRequest, LoadedDelivery, LoadedLane } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface RefillOptions {
  readonly queue: Pick<LaneReader, 'loadLanes'>;
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
/**
 * Longer than any statement that writes rows of the queue may take (20 s). Not longer than that: where somebody keeps a
 * transaction open, all that was settled in this time is still there to be walked through.
 */
const SWEEP_LOOK_BACK_MS = 30_000;
const RETRY_PAUSE_MS = 200;
/**
 * Extra time for a request of an earlier owner: it may have left a little after it was written down, and its outcome
 * takes time to be written. With half a second a slow database was enough for a second copy.
 */
const ON_THE_WIRE_MARGIN_MS = 3_000;

/** What to read: what comes next, what was just accepted, what may have been missed lately, everything. */
export type Want = 'more' | 'recent' | 'sweep' | 'bottom';
/** What a lane asked for, and when: a look back begins there, however long the read before it takes. */
interface Wanted {
  readonly want: Want;
  readonly since: number;
}
const BREADTH: Record<Want, number> = { more: 0, recent: 1, sweep: 2, bottom: 3 };

const isUrgent = ({ want }: Wanted): boolean => want === 'more' || want === 'recent';

export class Refill {
  readonly #options: RefillOptions;
  #wanted = new Map<Lane, Wanted>();
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
    // One less: a sequence that was never used says 1, like one that was used once.
    this.#marks.push({ at, seq: seq - 1 });
    while (this.#marks.length > 2 && this.#marks[1]!.at < at - SWEEP_LOOK_BACK_MS) this.#marks.shift();
  }

  want(lane: Lane, want: Want): void {
    if (this.#stopped || lane.closed) return;
    this.#remember(lane, { want, since: this.#options.clock.monotonic() });
    this.#run();
  }

  #remember(lane: Lane, wanted: Wanted): void {
    const before = this.#wanted.get(lane);
    if (before === undefined) this.#wanted.set(lane, wanted);
    else if (BREADTH[before.want] < BREADTH[wanted.want] || wanted.since < before.since) {
      const want = BREADTH[before.want] < BREADTH[wanted.want] ? wanted.want : before.want;
      this.#wanted.set(lane, { want, since: Math.min(before.since, wanted.since) });
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wanted.clear();
    await this.#running;
  }

  #run(): void {
    if (this.#running !== null || this.#wanted.size === 0 || this.#stopped) return;
    // After this turn: lanes that are woken together are read together.
    this.#running = Promise.resolve()
      .then(() => this.#readOnce())
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
    const batch = this.#next();
    if (batch.length === 0) return;
    const limit = Math.max(
      1,
      Math.min(this.#options.laneItems, Math.ceil(this.#options.room() / batch.length)),
    );
    const requests = batch.map(([lane, wanted]) => this.#request(lane, wanted, limit));
    for (const [lane] of batch) lane.read.started();
    try {
      const answers = await this.#options.queue.loadLanes(requests);
      for (const [index, [lane]] of batch.entries())
        this.#fill(lane, requests[index]!, answers.get(lane.id)!);
    } catch (error) {
      for (const [lane, wanted] of batch) this.#remember(lane, wanted);
      throw error;
    } finally {
      for (const [lane] of batch) lane.read.ended();
    }
    // Only now: a lane that missed something meanwhile asks again, and one that is still loading does not ask.
    this.#options.filled(batch.map(([lane]) => lane));
  }

  /** Something new first: a round of sweeps over thousands of lanes must not make it wait. */
  #next(): [Lane, Wanted][] {
    const batch: [Lane, Wanted][] = [];
    for (const isTurnOf of [isUrgent, () => true]) {
      for (const [lane, wanted] of this.#wanted) {
        if (batch.length === LANES_PER_READ) return batch;
        if (lane.closed) this.#wanted.delete(lane);
        else if (isTurnOf(wanted)) {
          this.#wanted.delete(lane);
          batch.push([lane, wanted]);
        }
      }
    }
    return batch;
  }

  /**
   * How many a lane may hold of each kind. One that does not send needs only what a probe can choose from; but in an
   * ordered one, what an earlier owner has on the wire need not be at its head, and has to be seen.
   */
  #bound(lane: Lane): number {
    return lane.flows || lane.fifo ? this.#options.laneItems : Math.min(2, this.#options.laneItems);
  }

  #request(lane: Lane, { want, since }: Wanted, limit: number): LaneRequest {
    const now = this.#options.clock.now();
    const waitedMs = this.#options.clock.monotonic() - since;
    const next = lane.read.moreFresh ? lane.read.freshCursor : Number.POSITIVE_INFINITY;
    const bound = this.#bound(lane);
    const room = Math.max(0, bound - Math.min(lane.queuedFresh, lane.fifo ? bound : lane.queuedRetries));
    // Known ones come back too: ask for enough to get past them.
    const max = Math.max(1, Math.min(limit, room) + lane.size);
    const bottom = { endpointId: lane.id, freshAfter: 0, dueFrom: lane.fifo ? null : 0, limit: max };
    if (lane.fifo || want === 'bottom') return bottom;
    switch (want) {
      case 'more':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS)),
          dueFrom: lane.read.retryHorizon,
        };
      case 'recent':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS + waitedMs)),
          dueFrom: Math.min(lane.read.retryHorizon, now - LOOK_BACK_MS - waitedMs),
        };
      case 'sweep':
        return {
          ...bottom,
          freshAfter: Math.min(next, this.seqBefore(SWEEP_LOOK_BACK_MS + waitedMs)),
          dueFrom: Math.min(lane.read.retryHorizon, now - SWEEP_LOOK_BACK_MS - waitedMs),
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

  #fill(lane: Lane, request: LaneRequest, answer: LoadedLane): void {
    if (lane.closed || lane.read.isVoid) return;
    if (request.freshAfter !== null) this.#fillFresh(lane, request.freshAfter, request.limit, answer.fresh);
    if (request.dueFrom !== null) this.#fillRetries(lane, request.dueFrom, request.limit, answer.due);
  }

  #fillFresh(lane: Lane, after: number, limit: number, rows: readonly LoadedDelivery[]): void {
    let cursor = after;
    for (const row of rows) {
      // Full: the rest stays where it is. In a strictly ordered lane a late one is put in its place all the same.
      if (!lane.fifo && lane.queuedFresh >= this.#bound(lane) && !lane.knows(row.id))
        return lane.read.freshRead(cursor, false);
      lane.addFresh(toItem(row, lane));
      cursor = row.seq;
    }
    lane.read.freshRead(cursor, rows.length < limit);
  }

  #fillRetries(lane: Lane, from: number, limit: number, rows: readonly LoadedDelivery[]): void {
    for (const row of rows) {
      if (lane.queuedRetries >= this.#bound(lane) && !lane.knows(row.id)) {
        lane.read.retriesRead(from, row.dueAt ?? 0, false);
        return lane.read.missedRetry(row.dueAt ?? 0);
      }
      lane.addRetry(toItem(row, lane));
    }
    lane.read.retriesRead(from, rows.at(-1)?.dueAt ?? 0, rows.length < limit);
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
