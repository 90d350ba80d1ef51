/**
 * Asks the store about deliveries of endpoints with `debounce` that are due (docs/shaping.md).
 *
 * Each lane runs one call at a time, and deliveries that become due meanwhile share the next one. Two calls at once could
 * each supersede what the other one sends, and would wait for each other's locks. All lanes together run two calls at a
 * time, because other endpoints need the connections too.
 */
import type { Clock } from '../domain/clock.ts';
import { type DebounceDecision, type Debouncer, MAX_ENDED } from '../ports/debouncer.ts';
import type { Lane, LaneItem } from './lane.ts';
import { ON_THE_WIRE_MARGIN_MS } from './refill.ts';

interface PendingDecision {
  readonly item: LaneItem;
  readonly resolve: (decision: TimedDecision) => void;
  readonly reject: (error: unknown) => void;
}

/** The calls of a lane: one runs, and deliveries that became due meanwhile wait for the next one. */
interface LaneCalls {
  waiting: PendingDecision[];
}

/** A process has three connections for dispatch. One of them stays free for other endpoints. */
const MAX_RUNNING_CALLS = 2;

export interface TimedDecision extends DebounceDecision {
  /** Monotonic time at which the call began. The start of a request is recorded after it. */
  readonly askedAt: number;
}

export class DebounceDecisions {
  readonly #debouncer: Debouncer;
  readonly #clock: Pick<Clock, 'now' | 'monotonic' | 'isSteady'>;
  /** Calls that run now, of all lanes. */
  #runningCalls = 0;
  /** Lanes that wait for another lane's call to end, in order. */
  readonly #waitingLanes: (() => void)[] = [];
  /** Only lanes that have a call running or waiting. */
  readonly #callsByLane = new Map<Lane, LaneCalls>();

  constructor(debouncer: Debouncer, clock: Pick<Clock, 'now' | 'monotonic' | 'isSteady'>) {
    this.#debouncer = debouncer;
    this.#clock = clock;
  }

  /** True while a call of this lane runs or waits. */
  isDeciding(lane: Lane): boolean {
    return this.#callsByLane.has(lane);
  }

  /** Resolves with the decision. Deliveries that it ended in the store are no longer in the queue of the lane. */
  decide(lane: Lane, item: LaneItem): Promise<TimedDecision> {
    return new Promise((resolve, reject) => {
      const pending = { item, resolve, reject };
      const calls = this.#callsByLane.get(lane);
      if (calls !== undefined) calls.waiting.push(pending);
      else void this.#runCalls(lane, { waiting: [pending] });
    });
  }

  async #runCalls(lane: Lane, calls: LaneCalls): Promise<void> {
    this.#callsByLane.set(lane, calls);
    // Start in the next microtask, so that deliveries that are taken together share a call.
    await Promise.resolve();
    while (calls.waiting.length > 0) {
      await this.#beginCall();
      const pending = calls.waiting;
      calls.waiting = [];
      await this.#ask(lane, pending, calls);
      this.#endCall();
    }
    this.#callsByLane.delete(lane);
  }

  async #beginCall(): Promise<void> {
    if (this.#runningCalls < MAX_RUNNING_CALLS) this.#runningCalls += 1;
    else await new Promise<void>((resolve) => this.#waitingLanes.push(resolve));
  }

  /** Lets the lane that has waited longest make the next call. */
  #endCall(): void {
    const next = this.#waitingLanes.shift();
    if (next === undefined) this.#runningCalls -= 1;
    else next();
  }

  async #ask(lane: Lane, pending: readonly PendingDecision[], calls: LaneCalls): Promise<void> {
    const askedAt = this.#clock.monotonic();
    try {
      const { decisions, skipped } = await this.#debouncer.decideDebounce({
        endpointId: lane.id,
        settings: lane.endpoint.debounce!,
        now: this.#clock.now(),
        asked: pending.map(({ item }) => ({ id: item.delivery.id, attempts: item.delivery.attempts })),
        underWay: this.#listUnderWay(lane, pending, calls),
        onWireMs: this.#onWireMs(lane),
        maxEnded: MAX_ENDED,
      });
      lane.forgetQueued(skipped);
      for (const { item, resolve } of pending) resolve({ ...decisions.get(item.delivery.id)!, askedAt });
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }

  /** After a step of the clock, any start that an earlier owner recorded may be recent. */
  #onWireMs({ endpoint, earlierRequestsUntil }: Lane): number {
    const isUnknown = this.#clock.isSteady === false && this.#clock.now() < earlierRequestsUntil;
    return isUnknown ? Number.POSITIVE_INFINITY : endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS;
  }

  /** Returns the deliveries under way that must not be superseded: all except those whose decision is still open. */
  #listUnderWay(lane: Lane, pending: readonly PendingDecision[], { waiting }: LaneCalls) {
    const undecided = new Set([...pending, ...waiting].map(({ item }) => item));
    return lane.underWay.filter((item) => !undecided.has(item)).map(({ delivery }) => delivery.id);
  }
}

/** Replays, and deliveries that somebody requested, are sent as they are. */
export const isDebounced = ({ endpoint }: Lane, { delivery, isRequested }: LaneItem): boolean =>
  endpoint.debounce !== null && delivery.trigger === 'auto' && !isRequested;
