import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../domain/endpoint-config.ts';
import type { Uuid } from '../domain/ids.ts';
import { Pace } from '../domain/pace.ts';
import type { LaneRequest, LoadedDelivery, LoadedLane } from '../ports/delivery-queue.ts';
import { Lane, type LaneItem } from './lane.ts';
import { LaneBudget, type LaneMemory } from './lane-budget.ts';
import { type LoadScope, Refill } from './refill.ts';

const ENDPOINT_ID = '0190aaaa-0000-7000-8000-000000000001';
const NOW = 1_800_000_000_000;

function endpointOf(config: EndpointConfig): Endpoint {
  const record = {
    id: ENDPOINT_ID,
    tenant: 't',
    url: 'https://a.test/',
    config,
    enabled: true,
    disabledReason: null,
  };
  return resolveEndpoint({ ...record, paused: false, deleted: false }, []);
}

const HEALTHY = { breaker: CLOSED_BREAKER, failingSince: null, blocked: false };
const newLane = (config: EndpointConfig = {}, memory?: LaneMemory) =>
  new Lane(endpointOf(config), HEALTHY, null, memory);

const idOf = (n: number): Uuid => `0190bbbb-0000-7000-8000-${String(n).padStart(12, '0')}`;

function item(n: number, part: Partial<LaneItem['delivery']> = {}, notBefore = 0): LaneItem {
  return {
    delivery: {
      id: idOf(n),
      endpointId: ENDPOINT_ID,
      seq: n,
      attempts: 0,
      attemptsBeforeReplay: 0,
      dueAt: null,
      agesFrom: NOW,
      trigger: 'auto',
      lastErrorClass: null,
      ...part,
    },
    event: null,
    state: 'queued',
    probe: false,
    notBefore,
    crashes: 0,
  };
}

/** What the dispatcher does when it is this lane's turn. */
function takeNext(lane: Lane, now: number): LaneItem | null {
  if (lane.readyAt(now, now) > now) return null;
  const { fresh } = lane.kindsReady(now);
  return lane.take(fresh ? 'fresh' : 'retry', now, now);
}

describe('a lane', () => {
  it('DSP-3: has at most max_in_flight on the wire', () => {
    const lane = newLane({ max_in_flight: 3 });
    for (let n = 1; n <= 5; n += 1) lane.addFresh(item(n));
    const taken = [1, 2, 3].map(() => takeNext(lane, NOW)!);
    expect(takeNext(lane, NOW)).toBeNull();
    expect(lane.readyAt(NOW, 0)).toBe(Number.POSITIVE_INFINITY);
    lane.markAnswered(taken[0]!);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(4);
  });

  it('FIFO: sends the next delivery only after the last result is recorded', () => {
    const lane = newLane({ ordering: 'fifo' });
    for (const n of [2, 3, 1]) lane.addFresh(item(n));
    const first = takeNext(lane, NOW)!;
    expect(first.delivery.seq).toBe(1);
    lane.markAnswered(first);
    expect(takeNext(lane, NOW)).toBeNull();
    lane.finish(first);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(2);
  });

  it('FIFO: waits for its head, whatever is behind it', () => {
    const lane = newLane({ ordering: 'fifo' });
    lane.addFresh(item(1));
    lane.addFresh(item(2));
    const head = takeNext(lane, NOW)!;
    lane.markAnswered(head);
    head.crashes = 1;
    lane.reschedule(head, { ...head.delivery, attempts: 1, dueAt: NOW + 5_000 }, true);
    // Its worker lives.
    expect(head.crashes).toBe(0);
    lane.addFresh(item(0));
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 5_000);
    expect(takeNext(lane, NOW + 5_000)).toBe(head);
  });

  it('FIFO: forgets its queue when it is not sure of its head', () => {
    for (const how of ['drop', 'not moved'] as const) {
      const lane = newLane({ ordering: 'fifo' });
      lane.addFresh(item(1));
      lane.addFresh(item(2));
      const head = takeNext(lane, NOW)!;
      if (how === 'drop') lane.drop(head);
      else {
        lane.markAnswered(head);
        lane.finish(head, false);
      }
      expect(takeNext(lane, NOW)).toBeNull();
      expect([lane.read.moreFresh, lane.read.freshCursor, lane.size]).toEqual([true, 0, 0]);
    }
  });

  it('never has a replayed fresh delivery in two queues', () => {
    const lane = newLane();
    lane.addFresh(item(1));
    lane.addRetry(item(1, { dueAt: NOW - 10, trigger: 'replay' }));
    const taken = lane.take('retry', NOW, 0) ?? lane.take('fresh', NOW, 0);
    expect(taken?.delivery.trigger).toBe('replay');
    expect(lane.take('fresh', NOW, 0)).toBeNull();
    expect(lane.take('retry', NOW, 0)).toBeNull();
  });

  it('RTY-7: moves a waiting retry that was made due now, and counts it once', () => {
    const lane = newLane();
    lane.read.retryHorizon = Number.POSITIVE_INFINITY;
    lane.addRetry(item(1, { attempts: 1, dueAt: NOW + 3_600_000 }));
    lane.addRetry(item(1, { attempts: 1, dueAt: NOW }));
    expect(lane.queuedRetries).toBe(1);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(1);
    expect(takeNext(lane, NOW + 7_200_000)).toBeNull();
    expect(lane.queuedRetries).toBe(0);
  });

  it('sends others while an earlier owner may have a delivery on the wire', () => {
    const lane = newLane();
    lane.addFresh(item(1, {}, NOW + 10_000));
    lane.addFresh(item(2));
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(2);
    expect(takeNext(lane, NOW)).toBeNull();
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 10_000);
    expect(takeNext(lane, NOW + 10_000)?.delivery.seq).toBe(1);
  });

  it('HLT-1: sends the oldest due delivery as the only probe while its circuit is open', () => {
    const lane = newLane({ breaker: { consecutive: 1, cooldown_seconds: 10 } });
    lane.read.retryHorizon = Number.POSITIVE_INFINITY;
    lane.addFresh(item(2, { agesFrom: NOW - 10 }));
    lane.addRetry(item(1, { attempts: 1, dueAt: NOW, agesFrom: NOW - 20 }));
    lane.breaker.heard('failure', NOW, false);
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 10_000);
    expect(lane.kindsReady(NOW + 10_000)).toEqual({ fresh: false, retry: true });
    const probe = takeNext(lane, NOW + 10_000)!;
    expect([probe.delivery.seq, probe.probe]).toEqual([1, true]);
    expect(lane.readyAt(NOW + 20_000, 0)).toBe(Number.POSITIVE_INFINITY);
    lane.putBack(probe);
    expect(lane.readyAt(NOW + 20_000, 0)).toBe(NOW + 20_000);
  });

  it('DSP-7: starts slowly, doubling with each round of successes', () => {
    const lane = newLane({ max_in_flight: 10 });
    lane.beginSlowStart();
    const limits: number[] = [];
    for (let i = 0; i < 16; i += 1) {
      limits.push(lane.limit);
      lane.recordSuccess(NOW);
    }
    expect(limits).toEqual([1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 10]);
  });

  it('DSP-5: owes a retry after three fresh deliveries, and keeps sending fresh ones without room for it', () => {
    const lane = newLane();
    for (let n = 1; n <= 9; n += 1) lane.addFresh(item(n));
    lane.addRetry(item(20, { attempts: 1, dueAt: NOW }));
    for (let i = 0; i < 3; i += 1) {
      expect(lane.owesRetry(NOW)).toBe(false);
      lane.take('fresh', NOW, 0);
    }
    expect(lane.owesRetry(NOW)).toBe(true);
    expect(lane.kindsReady(NOW)).toEqual({ fresh: true, retry: true });
    lane.take('retry', NOW, 0);
    expect(lane.owesRetry(NOW)).toBe(false);
  });

  it('DSP-3: takes a token for every request and returns it for one that was not sent', () => {
    const lane = new Lane(endpointOf({}), HEALTHY, new Pace({ perSecond: 1, burst: 1 }, 0, 1));
    for (let n = 1; n <= 3; n += 1) lane.addFresh(item(n));
    const first = lane.take('fresh', NOW, 0)!;
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 1_000);
    lane.putBack(first);
    expect(lane.readyAt(NOW, 0)).toBe(NOW);
    expect(lane.take('fresh', NOW, 0)).toBe(first);
    expect(lane.take('fresh', NOW, 0)).toBeNull();
    expect(lane.queuedFresh).toBe(2);
  });

  it('DSP-3: requests delayed by slow payloads do not exceed the rate when they are sent', () => {
    const lane = new Lane(endpointOf({}), HEALTHY, new Pace({ perSecond: 10, burst: 2 }, 0, 2));
    for (let n = 1; n <= 9; n += 1) lane.addFresh(item(n));
    for (const at of [0, 0, 5_000, 5_000]) expect(lane.take('fresh', NOW, at)).not.toBeNull();
    expect([lane.msUntilSend(5_000), lane.msUntilSend(5_000), lane.msUntilSend(5_000)]).toEqual([0, 0, 100]);
    expect(lane.msUntilSend(5_100)).toBe(0);
  });

  it('drops later retries when there is no room for earlier ones', () => {
    const lane = newLane();
    lane.read.retryHorizon = Number.POSITIVE_INFINITY;
    for (let n = 1; n <= 5; n += 1) lane.addRetry(item(n, { attempts: 1, dueAt: NOW + n * 1_000 }));
    lane.read.leaveRetryInStore(NOW + 3_500);
    lane.dropRetriesBeyondHorizon();
    expect([lane.queuedRetries, lane.size, lane.read.retryHorizon]).toEqual([3, 3, NOW + 3_500]);
    lane.dropRetriesBeyondHorizon();
    expect(lane.queuedRetries).toBe(3);
  });

  it('is not suspect because of a request that was never sent', () => {
    const lane = newLane();
    lane.addFresh(item(1));
    lane.putBack(takeNext(lane, NOW)!);
    expect(lane.oldestStartAt).toBe(Number.POSITIVE_INFINITY);
  });
});

// --- the lane and its refill against a model of the database ---------------------------------------------------

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
/** More by `LANE_RUNS=5000`. */
const RUNS = Number(process.env.LANE_RUNS ?? 500);

/** One lane, its refill, and a database whose answers come when the test says so, as old as they then are. */
class Bench {
  readonly memory = new LaneBudget({ laneItems: LANE_ITEMS, totalItems: 1_000, totalBytes: 1_000_000 });
  readonly lane: Lane;
  readonly refill: Refill;
  readonly rows = new Map<Uuid, Row>();
  readonly inFlight = new Set<LaneItem>();
  readonly unsettled = new Set<LaneItem>();
  readonly #answers: (() => void)[] = [];
  #failing = false;
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
      scheduler: { consider: () => void this.feed() },
      onProblem: () => {},
    });
    this.want('all');
  }

  get reading(): boolean {
    return this.#answers.length > 0;
  }

  want(scope: LoadScope): void {
    this.refill.request(this.lane, scope);
  }

  feed(): void {
    this.refill.feed(this.lane, this.now);
  }

  /** As old as the moment it was asked for, like an answer of the database. */
  #load({ freshAfter, dueFrom, limit }: LaneRequest): Promise<Map<Uuid, LoadedLane>> {
    const { fifo } = this.lane;
    const rows = [...this.rows.values()];
    const fresh = rows
      .filter((row) => freshAfter !== null && (row.dueAt === null || fifo) && row.seq > freshAfter)
      .toSorted((a, b) => a.seq - b.seq);
    const due = rows
      .filter((row) => dueFrom !== null && row.dueAt !== null && row.dueAt >= dueFrom - 0.01)
      .toSorted((a, b) => a.dueAt! - b.dueAt!);
    const lane = { fresh: fresh.slice(0, limit).map(toLoaded), due: due.slice(0, limit).map(toLoaded) };
    return new Promise((resolve, reject) =>
      this.#answers.push(() =>
        this.#failing ? reject(new Error('away')) : resolve(new Map([[ENDPOINT_ID, lane]])),
      ),
    );
  }

  async answer(failing = false): Promise<void> {
    this.#failing = failing;
    for (const answer of this.#answers.splice(0)) answer();
    await settled();
    this.#failing = false;
  }

  accept(delayMs: number | null): void {
    this.seq += 1;
    const dueAt = delayMs === null || this.lane.fifo ? null : this.now + delayMs;
    const row: Row = { id: idOf(this.seq), seq: this.seq, dueAt, attempts: 0 };
    this.rows.set(row.id, row);
    const { lane } = this;
    const fresh = item(this.seq, { dueAt });
    if (lane.fifo) this.want('recent');
    else if (dueAt !== null) {
      if (dueAt < lane.read.retryHorizon && lane.queuedRetries < LANE_ITEMS) lane.addRetry(fresh);
      else lane.read.leaveRetryInStore(dueAt);
    } else if (lane.read.moreFresh || lane.queuedFresh >= LANE_ITEMS)
      lane.read.leaveFreshInStore(this.refill.seqBefore(2_000));
    else lane.addFresh({ ...fresh, event: { data: Buffer.alloc(10) } as LaneItem['event'] });
    this.feed();
  }

  /** A replay makes a waiting delivery due now. */
  replay(which: number): void {
    const waiting = [...this.rows.values()];
    const row = waiting[which % Math.max(1, waiting.length)];
    if (row === undefined) return;
    row.dueAt = this.now;
    this.want('recent');
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
    if (this.lane.fifo && row!.attempts === 0) {
      const lowest = Math.min(...[...this.rows.values()].map(({ seq }) => seq));
      expect(row!.seq, 'out of order').toBe(lowest);
    }
    this.inFlight.add(taken);
    expect(this.inFlight.size).toBeLessThanOrEqual(this.lane.limit);
    this.feed();
  }

  end(which: number, how: 'markAnswered' | 'putBack' | 'drop'): void {
    const taken = [...this.inFlight][which % Math.max(1, this.inFlight.size)];
    if (taken === undefined) return;
    this.inFlight.delete(taken);
    this.lane[how](taken);
    if (how === 'markAnswered') this.unsettled.add(taken);
    if (how === 'drop') this.want('all');
    this.feed();
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
      // An earlier try of the same settle was committed after all.
      row.attempts += 1;
      row.dueAt = this.now + delayMs;
      this.lane.finish(answered, false);
      this.want('all');
    }
    this.feed();
  }

  check(): void {
    const { lane, memory } = this;
    expect([memory.items, lane.inFlight, lane.unsettled]).toEqual([
      lane.size,
      this.inFlight.size,
      this.unsettled.size,
    ]);
    if (this.reading) return;
    for (const row of this.rows.values()) {
      if (lane.has(row.id)) continue;
      const covered =
        row.dueAt === null || lane.fifo
          ? lane.read.moreFresh && row.seq > lane.read.freshCursor
          : row.dueAt >= lane.read.retryHorizon - 0.01;
      expect(covered, `row ${row.seq} (due ${row.dueAt}) is lost`).toBe(true);
    }
  }

  /** Everything that is left is sent and ends, by nothing but the usual course of things. */
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
      const horizon = this.lane.read.retryHorizon;
      if (next === Number.POSITIVE_INFINITY && horizon < Number.POSITIVE_INFINITY)
        this.now = Math.max(this.now, horizon);
      this.feed();
      await settled();
    }
    let reads = 0;
    for (; this.reading; reads += 1) {
      expect(reads, 'reads without end').toBeLessThan(10);
      await this.answer();
    }
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

const which = fc.nat({ max: 7 });
const often = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const step = fc.oneof(
  often(
    5,
    fc.record({
      do: fc.constant('accept' as const),
      delayMs: fc.option(fc.integer({ min: 1, max: 20_000 })),
    }),
  ),
  often(8, fc.record({ do: fc.constant('take' as const) })),
  often(
    5,
    fc.record({
      do: fc.constant('end' as const),
      which,
      how: fc.constantFrom(
        'markAnswered' as const,
        'markAnswered' as const,
        'putBack' as const,
        'drop' as const,
      ),
    }),
  ),
  often(
    5,
    fc.record({
      do: fc.constant('settle' as const),
      which,
      how: fc.constantFrom('ended' as const, 'retry' as const, 'retry' as const, 'not_moved' as const),
      delayMs: fc.integer({ min: 1, max: 60_000 }),
      hasRoom: fc.boolean(),
    }),
  ),
  // Most reads are answered soon: otherwise nothing but reads would ever be seen.
  often(12, fc.record({ do: fc.constant('answer' as const), failing: fc.constant(false) })),
  often(1, fc.record({ do: fc.constant('answer' as const), failing: fc.constant(true) })),
  often(
    1,
    fc.record({
      do: fc.constant('want' as const),
      want: fc.constantFrom<LoadScope>('more', 'recent', 'sweep', 'all'),
    }),
  ),
  often(1, fc.record({ do: fc.constant('replay' as const), which })),
  often(3, fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 10_000 }) })),
  often(1, fc.record({ do: fc.constant('clear' as const) })),
);

async function play(
  bench: Bench,
  action: typeof step extends fc.Arbitrary<infer T> ? T : never,
): Promise<void> {
  switch (action.do) {
    case 'accept':
      return bench.accept(action.delayMs);
    case 'take':
      return bench.take();
    case 'end':
      return bench.end(action.which, action.how);
    case 'settle':
      return bench.settle(action.which, action.how, action.delayMs, action.hasRoom);
    case 'answer':
      return bench.answer(action.failing);
    case 'want':
      return bench.want(action.want);
    case 'replay':
      return bench.replay(action.which);
    case 'wait':
      bench.now += action.ms;
      bench.refill.markSeq(bench.seq);
      return bench.feed();
    case 'clear':
      bench.lane.clearQueue();
      return bench.want('all');
  }
}

describe('a lane with its refill, against a model of the database', () => {
  it.each([
    ['unordered', false],
    ['FIFO', true],
  ])('%s: sends nothing twice, loses nothing, stalls never, and forgets what it held', async (_, fifo) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 60, size: 'max' }),
        async (maxInFlight, steps) => {
          const bench = new Bench(fifo, fifo ? 1 : maxInFlight);
          await settled();
          for (const action of steps) {
            await play(bench, action);
            await settled();
            bench.check();
          }
          await bench.drain();
          expect(bench.memory).toMatchObject({ items: 0, bytes: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('FIFO: ignores a read that began before the queue was cleared', async () => {
    const bench = new Bench(true, 1);
    await settled();
    await bench.answer();
    bench.accept(null);
    await settled();
    await bench.answer();
    bench.take();
    bench.accept(null);
    await settled();
    bench.end(0, 'drop');
    await bench.answer();
    bench.take();
    expect(bench.inFlight.size).toBe(0);
    await bench.answer();
    bench.take();
    expect([...bench.inFlight].map(({ delivery }) => delivery.seq)).toEqual([1]);
  });

  it('gives back all memory when it is closed, with requests still on the wire', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const bench = new Bench(false, 3);
        await settled();
        for (const action of steps) await play(bench, action);
        bench.lane.close();
        expect(bench.memory).toMatchObject({ items: 0, bytes: 0 });
        await bench.answer();
        for (const taken of bench.inFlight) {
          bench.lane.markAnswered(taken);
          bench.lane.reschedule(taken, { ...taken.delivery, attempts: 1, dueAt: bench.now }, true);
        }
        for (const answered of bench.unsettled) bench.lane.finish(answered);
        expect(bench.memory).toMatchObject({ items: 0, bytes: 0 });
        expect(takeNext(bench.lane, bench.now + 1e9)).toBeNull();
      }),
      { numRuns: RUNS },
    );
  });
});
