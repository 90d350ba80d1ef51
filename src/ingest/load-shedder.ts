/**
 * Rejects a part of the published events while this process, a process of this node that delivers, or the database is
 * overloaded (ACC-8), before deliveries suffer: they need the same event loop for their leases, or the same cores, and the
 * same database for their results.
 *
 *   admits all ──a signal is above its limit──▶ shedding: the admitted share × 0.7 per sample, at least 5 %
 *     ▲                                            │  between half of the limit and the limit: + 0.5 % per sample
 *     └── the share is 100 % again ◀───────────────┘  all signals below half of their limits: + 5 % per sample
 *
 * The signals: how late a timer of this process fires, how long the commits of accepted events take, and both for the
 * delivering processes of the node, whose commits are those of results. If the database does not answer at all, requests
 * wait until the accept queue is full.
 *
 * Each tenant gets an equal part of the admitted events. So most shed events belong to tenants that publish much, and a tenant that
 * publishes little loses none.
 *
 * Only events of API requests are shed. Committed events (outbox, relay, Kafka) are always accepted. While there are no such
 * requests, nothing is measured: the first one starts the samples, and they end a while after the last one.
 */
import type { Clock } from '../domain/clock.ts';
import { LoadMeter, NO_LOAD, type ProcessLoad } from '../domain/load-meter.ts';

export interface LoadShedderOptions {
  readonly clock: Clock;
  /** Shed while timers are later than this. 0: never. */
  readonly maxLoopDelayMs: number;
  /** Shed while commits take longer than this. 0: never. */
  readonly maxCommitMs: number;
  /** Returns the load of the processes of this node that deliver, this one included. Absent: none does. */
  readonly deliveryLoad?: (() => ProcessLoad) | undefined;
}

export const shedReasons = ['event_loop', 'commits', 'delivery'] as const;
export type ShedReason = (typeof shedReasons)[number];

const DECREASE = 0.7;
const INCREASE = 0.05;
const SLOW_INCREASE = 0.005;
/** How long admitted events are counted, to divide them among the tenants. */
const WINDOW_MS = 1_000;
const MIN_SHARE = 0.05;
/** Below this share, `Retry-After` is longer. */
const LOW_SHARE = 0.5;

export class LoadShedder {
  readonly #options: LoadShedderOptions;
  readonly #meter: LoadMeter;
  readonly #shed: Record<ShedReason, number> = { event_loop: 0, commits: 0, delivery: 0 };
  #reason: ShedReason = 'event_loop';
  #share = 1;
  /** Grows by the share with every event. An admitted event costs one. */
  #credit = 1;
  /** The events of each tenant that were admitted in this window. */
  #admitted = new Map<string, number>();
  #offered = 0;
  #windowEndsAt = Number.NEGATIVE_INFINITY;
  /** How many events of a tenant are admitted in a window. Null: not known before the first window ends. */
  #perTenant: number | null = null;

  constructor(options: LoadShedderOptions) {
    this.#options = options;
    this.#meter = new LoadMeter({
      clock: options.clock,
      onSample: (load) => this.#adapt(load),
      mustGoOn: () => this.#share < 1,
    });
  }

  /** The share of published events that is admitted, from 0.05 to 1. */
  get share(): number {
    return this.#share;
  }

  /** How many events were shed, by the signal that was above its limit. */
  get shed(): Readonly<Record<ShedReason, number>> {
    return this.#shed;
  }

  get retryAfterSeconds(): number {
    return this.#share < LOW_SHARE ? 5 : 2;
  }

  start(): void {
    this.#meter.start();
  }

  stop(): void {
    this.#meter.stop();
  }

  /** Call this after each commit of accepted events. */
  recordCommit(tookMs: number): void {
    this.#meter.recordCommit(tookMs);
  }

  /** Returns false if the event must be rejected. */
  admit(tenant: string): boolean {
    this.#meter.use();
    if (this.#share === 1) return true;
    this.#startWindowIfOver();
    this.#offered += 1;
    const admitted = this.#admitted.get(tenant) ?? 0;
    if (this.#perTenant === null ? this.#takeCredit() : admitted < this.#perTenant) {
      this.#admitted.set(tenant, admitted + 1);
      return true;
    }
    this.#admitted.set(tenant, admitted);
    this.#shed[this.#reason] += 1;
    return false;
  }

  #takeCredit(): boolean {
    this.#credit += this.#share;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  /** Divides the events that the share allows among the tenants of the last window. */
  #startWindowIfOver(): void {
    const now = this.#options.clock.monotonic();
    if (now < this.#windowEndsAt) return;
    const isConsecutive = now < this.#windowEndsAt + WINDOW_MS;
    this.#perTenant = isConsecutive ? divideAmong(this.#admitted, this.#offered * this.#share) : null;
    this.#admitted = new Map();
    this.#offered = 0;
    this.#windowEndsAt = now + WINDOW_MS;
  }

  #adapt(own: ProcessLoad): void {
    const { maxLoopDelayMs, maxCommitMs, deliveryLoad } = this.#options;
    const delivery = deliveryLoad?.() ?? NO_LOAD;
    const loads: Record<ShedReason, number> = {
      event_loop: loadOf(own.loopDelayMs, maxLoopDelayMs),
      commits: loadOf(own.commitMs, maxCommitMs),
      delivery: Math.max(
        loadOf(delivery.loopDelayMs, maxLoopDelayMs),
        loadOf(delivery.commitMs, maxCommitMs),
      ),
    };
    const worst = shedReasons.reduce((a, b) => (loads[b] > loads[a] ? b : a));
    if (loads[worst] > 1) {
      if (this.#share === 1) this.#credit = 1;
      this.#reason = worst;
      this.#share = Math.max(MIN_SHARE, this.#share * DECREASE);
    } else this.#share = Math.min(1, this.#share + (loads[worst] < 0.5 ? INCREASE : SLOW_INCREASE));
  }
}

/** Returns how many events each tenant may publish, at least one. */
const divideAmong = (tenants: ReadonlyMap<string, number>, events: number): number =>
  Math.max(1, Math.ceil(events / Math.max(1, tenants.size)));

/** Returns the share of the limit that is used. 0: there is no limit. */
const loadOf = (value: number, limit: number): number => (limit === 0 ? 0 : value / limit);
