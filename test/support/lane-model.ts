import { expect } from 'vitest';
import type { Lane, LaneItem } from '../../src/dispatch/lane.ts';
import { LaneBudget } from '../../src/dispatch/lane-budget.ts';
import { type LoadScope, Refill } from '../../src/dispatch/refill.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { LaneRequest, LoadedDelivery, LoadedLane } from '../../src/ports/delivery-queue.ts';
import { ENDPOINT_ID, idOf, NOW, newItem, newLane, takeNext } from './lanes.ts';

interface Row {
  readonly id: Uuid;
  readonly seq: number;
  dueAt: number | null;
  attempts: number;
}

const toLoaded = (row: Row): LoadedDelivery => ({
  ...row,
  endpointId: ENDPOINT_ID,
  attemptsBeforeReplay: 0,
  agesFrom: NOW,
  trigger: 'auto',
  lastErrorClass: null,
  startedAt: null,
  carefulStarts: 0,
});

const LANE_ITEMS = 4;
/**
 * One lane, its refill, and a model of the store. A read sees the rows at the moment of its request; its answer arrives
 * when the test calls `answer`. Every method checks what must always hold.
 */
export class LaneModel {
  readonly memory = new LaneBudget({ laneItems: LANE_ITEMS, totalItems: 1_000, totalBytes: 1_000_000 });
  readonly lane: Lane;
  readonly refill: Refill;
  readonly rows = new Map<Uuid, Row>();
  readonly inFlight = new Set<LaneItem>();
  readonly unsettled = new Set<LaneItem>();
  readonly #answers: (() => void)[] = [];
  #fails = false;
  now = NOW;
  seq = 0;

  constructor(fifo: boolean, maxInFlight: number) {
    this.lane = newLane({ ordering: fifo ? 'fifo' : 'none', max_in_flight: maxInFlight }, this.memory);
    this.refill = new Refill({
      queue: { loadLanes: ([request]) => this.#load(request!) },
      clock: {
        now: () => this.now,
        monotonic: () => this.now - NOW,
        after: (_delayMs, task) => {
          task();
          return () => {};
        },
      },
      budget: this.memory,
      scheduler: { consider: () => void this.loadIfLow() },
      onProblem: () => {},
    });
    this.request('all');
  }

  get isReading(): boolean {
    return this.#answers.length > 0;
  }

  request(scope: LoadScope): void {
    this.refill.request(this.lane, scope);
  }

  loadIfLow(): void {
    this.refill.loadIfLow(this.lane, this.now);
  }

  /** Reads the rows now, like a snapshot of the database. The answer is delivered later. */
  #load({ freshAfter, dueFrom, limit }: LaneRequest): Promise<Map<Uuid, LoadedLane>> {
    const { isFifo } = this.lane;
    const rows = [...this.rows.values()];
    const fresh = rows
      .filter((row) => freshAfter !== null && (row.dueAt === null || isFifo) && row.seq > freshAfter)
      .toSorted((a, b) => a.seq - b.seq);
    const due = rows
      .filter((row) => dueFrom !== null && row.dueAt !== null && row.dueAt >= dueFrom - 0.01)
      .toSorted((a, b) => a.dueAt! - b.dueAt!);
    const lane = { fresh: fresh.slice(0, limit).map(toLoaded), due: due.slice(0, limit).map(toLoaded) };
    return new Promise((resolve, reject) =>
      this.#answers.push(() =>
        this.#fails
          ? reject(new Error('The store is unavailable.'))
          : resolve(new Map([[ENDPOINT_ID, lane]])),
      ),
    );
  }

  async answer(fails = false): Promise<void> {
    this.#fails = fails;
    for (const answer of this.#answers.splice(0)) answer();
    await turn();
    this.#fails = false;
  }

  accept(delayMs: number | null): void {
    this.seq += 1;
    const dueAt = delayMs === null || this.lane.isFifo ? null : this.now + delayMs;
    const row: Row = { id: idOf(this.seq), seq: this.seq, dueAt, attempts: 0 };
    this.rows.set(row.id, row);
    const { lane } = this;
    const fresh = newItem(this.seq, { dueAt });
    if (lane.isFifo) this.request('recent');
    else if (dueAt !== null) {
      if (dueAt < lane.readProgress.retryHorizon && lane.queuedRetries < LANE_ITEMS) lane.addRetry(fresh);
      else lane.readProgress.leaveRetryInStore(dueAt);
    } else if (lane.readProgress.hasMoreFresh || lane.queuedFresh >= LANE_ITEMS)
      lane.readProgress.leaveFreshInStore(this.refill.seqBefore(2_000));
    else lane.addFresh({ ...fresh, event: { data: Buffer.alloc(10) } as LaneItem['event'] });
    this.loadIfLow();
  }

  /** A replay makes a waiting delivery due now. */
  replay(which: number): void {
    const waiting = [...this.rows.values()];
    const row = waiting[which % Math.max(1, waiting.length)];
    if (row === undefined) return;
    row.dueAt = this.now;
    this.request('recent');
  }

  take(): void {
    const taken = takeNext(this.lane, this.now);
    if (taken === null) return;
    const row = this.rows.get(taken.delivery.id);
    expect(this.inFlight.has(taken) || this.unsettled.has(taken), 'twice at once').toBe(false);
    for (const other of [...this.inFlight, ...this.unsettled])
      expect(other.delivery.id, 'twice at once').not.toBe(taken.delivery.id);
    expect(row, 'sent though it had ended').toBeDefined();
    expect(taken.delivery.attempts, 'sent again as the same attempt').toBe(row!.attempts);
    if (row!.dueAt !== null) expect(row!.dueAt, 'sent before it was due').toBeLessThanOrEqual(this.now);
    if (this.lane.isFifo && row!.attempts === 0) {
      const lowest = Math.min(...[...this.rows.values()].map(({ seq }) => seq));
      expect(row!.seq, 'out of order').toBe(lowest);
    }
    this.inFlight.add(taken);
    expect(this.inFlight.size).toBeLessThanOrEqual(this.lane.inFlightLimit);
    this.loadIfLow();
  }

  end(which: number, how: 'markAnswered' | 'putBack' | 'drop'): void {
    const taken = [...this.inFlight][which % Math.max(1, this.inFlight.size)];
    if (taken === undefined) return;
    this.inFlight.delete(taken);
    this.lane[how](taken);
    if (how === 'markAnswered') this.unsettled.add(taken);
    if (how === 'drop') this.request('all');
    this.loadIfLow();
  }

  settle(which: number, how: 'ended' | 'retry' | 'not_moved', delayMs: number, hasRoom: boolean): void {
    const answered = [...this.unsettled][which % Math.max(1, this.unsettled.size)];
    if (answered === undefined) return;
    this.unsettled.delete(answered);
    const row = this.rows.get(answered.delivery.id)!;
    if (how === 'retry') {
      row.attempts += 1;
      row.dueAt = this.now + delayMs;
      this.lane.reschedule(
        answered,
        { ...answered.delivery, attempts: row.attempts, dueAt: row.dueAt },
        hasRoom && this.lane.queuedRetries < LANE_ITEMS,
      );
    } else if (how === 'ended') {
      this.rows.delete(row.id);
      this.lane.finish(answered);
    } else {
      // An earlier try to settle was committed although its answer was lost.
      row.attempts += 1;
      row.dueAt = this.now + delayMs;
      this.lane.finish(answered, false);
      this.request('all');
    }
    this.loadIfLow();
  }

  check(): void {
    const { lane, memory } = this;
    expect([memory.items, lane.inFlight, lane.unsettled]).toEqual([
      lane.size,
      this.inFlight.size,
      this.unsettled.size,
    ]);
    if (this.isReading) return;
    for (const row of this.rows.values()) {
      if (lane.has(row.id)) continue;
      const covered =
        row.dueAt === null || lane.isFifo
          ? lane.readProgress.hasMoreFresh && row.seq > lane.readProgress.freshCursor
          : row.dueAt >= lane.readProgress.retryHorizon - 0.01;
      expect(covered, `row ${row.seq} (due ${row.dueAt}) is lost`).toBe(true);
    }
  }

  /** Sends and settles all deliveries that are left, by the usual calls only. */
  async drain(): Promise<void> {
    for (let round = 0; this.rows.size > 0 || this.inFlight.size + this.unsettled.size > 0; round += 1) {
      expect(round, `stalled with ${this.rows.size} rows waiting`).toBeLessThan(400);
      await this.answer();
      this.take();
      this.end(0, 'markAnswered');
      this.settle(0, 'ended', 0, true);
      this.check();
      const next = this.lane.readyAt(this.now, this.now);
      this.now = Math.max(this.now + 100, next < Number.POSITIVE_INFINITY ? next : 0);
      const horizon = this.lane.readProgress.retryHorizon;
      if (next === Number.POSITIVE_INFINITY && horizon < Number.POSITIVE_INFINITY)
        this.now = Math.max(this.now, horizon);
      this.loadIfLow();
      await turn();
    }
    let reads = 0;
    for (; this.isReading; reads += 1) {
      expect(reads, 'reads without end').toBeLessThan(10);
      await this.answer();
    }
  }
}

/** Lets all promises that can settle do so. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
