/**
 * The circuit breaker of one endpoint: a state machine without I/O and without a clock.
 *
 *    20 failures in a row, or 80 % of ≥ 20 in 10 min
 *   closed ───────────────────────────────────────▶ open ◀──────────┐
 *     ▲                                              │ cooldown over │ probe failed: cooldown doubles
 *     │                                              ▼               │
 *     └──────────── probe succeeded ───────────── half_open ─────────┘
 *
 * While the circuit is open, nothing is sent and attempts are not counted. In half_open one delivery is the probe: the
 * oldest that is due. A probe without an outcome (its worker died) ends at its deadline. A user can also request a
 * probe while the circuit is open: its success closes the circuit, its failure changes nothing. 5xx, timeouts and
 * transport errors are failures. 4xx and 429 show that the receiver works: while the circuit is closed they do not
 * count, and as the answer to a probe they close it.
 */
export interface BreakerSettings {
  readonly consecutive: number;
  readonly failureRate: number;
  readonly minRequests: number;
  readonly windowSeconds: number;
  readonly cooldownSeconds: number;
  readonly maxCooldownSeconds: number;
}

/**
 * Measured: with a cooldown of five minutes, a flaky endpoint was open most of the time (docs/adr/0018-breaker-cooldown.md).
 * With five failures in a row or half of 20, an endpoint that fails half of its requests got almost nothing
 * (docs/adr/0020-breaker-thresholds.md).
 */
export const DEFAULT_BREAKER: BreakerSettings = {
  consecutive: 20,
  failureRate: 0.8,
  minRequests: 20,
  windowSeconds: 600,
  cooldownSeconds: 30,
  maxCooldownSeconds: 3600,
};

export const circuits = ['closed', 'open', 'half_open'] as const;
export type Circuit = (typeof circuits)[number];

/** The state that is stored: it survives a restart and a change of owner. */
export interface BreakerRecord {
  readonly circuit: Circuit;
  readonly consecutiveFailures: number;
  readonly openedAt: number | null;
  readonly cooldownMs: number;
  /** open: when the probe may start. half_open: the deadline of the probe. */
  readonly nextProbeAt: number | null;
}

export const CLOSED_BREAKER: BreakerRecord = {
  circuit: 'closed',
  consecutiveFailures: 0,
  openedAt: null,
  cooldownMs: 0,
  nextProbeAt: null,
};

/** `none`: the attempt says nothing about the receiver, because Posthorn itself failed. */
export type Signal = 'success' | 'failure' | 'neutral' | 'none';

const BUCKETS = 10;

export class Breaker {
  #record: BreakerRecord;
  readonly #settings: BreakerSettings | null;
  /** The window as a ring of ten buckets: memory does not grow with traffic. Null: no outcome was counted yet. */
  #window: { readonly totals: Uint32Array; readonly failures: Uint32Array } | null = null;
  /** The newest bucket. Null: no outcome was counted yet. */
  #bucketEpoch: number | null = null;

  constructor(settings: BreakerSettings | null, record: BreakerRecord = CLOSED_BREAKER) {
    this.#settings = settings;
    this.#record = settings === null ? CLOSED_BREAKER : record;
  }

  get record(): BreakerRecord {
    return this.#record;
  }

  /** True if attempts other than probes may start. */
  get allowsTraffic(): boolean {
    return this.#record.circuit === 'closed';
  }

  /** When a probe may start. Null if the circuit is closed. */
  get probeAt(): number | null {
    return this.#record.circuit === 'closed' ? null : this.#record.nextProbeAt;
  }

  /** Records the start of a probe. If the probe has no outcome by `deadline`, another one may start. */
  startProbe(deadline: number): BreakerRecord {
    this.#record = { ...this.#record, circuit: 'half_open', nextProbeAt: deadline };
    return this.#record;
  }

  /**
   * Records that the probe was not sent, for example because ownership was lost. Another one may start at
   * `nextProbeAt`.
   */
  abandonProbe(nextProbeAt: number): BreakerRecord {
    if (this.#record.circuit === 'half_open')
      this.#record = { ...this.#record, circuit: 'open', nextProbeAt };
    return this.#record;
  }

  /**
   * Records what an attempt says about the endpoint. Returns true if the record must be stored because the circuit
   * changed. A failed probe that a user requested leaves the cooldown as it was.
   */
  recordSignal(signal: Signal, now: number, wasProbe: boolean, wasRequested = false): boolean {
    const settings = this.#settings;
    if (settings === null) return false;
    const before = this.#record;
    if (before.circuit !== 'closed') {
      // Attempts that were in flight when the circuit opened say nothing about a recovery.
      if (!wasProbe) return false;
      if (wasRequested && (signal === 'failure' || signal === 'none')) return false;
      if (signal === 'none') {
        this.#record = this.#openRecord(now, before.cooldownMs, before);
        return true;
      }
      this.#record =
        signal === 'failure'
          ? this.#openRecord(now, Math.min(before.cooldownMs * 2, settings.maxCooldownSeconds * 1000), before)
          : CLOSED_BREAKER;
      this.#clearWindow();
      return true;
    }
    if (signal === 'neutral' || signal === 'none') return false;
    this.#countOutcome(signal === 'failure', now);
    if (signal === 'success') {
      if (before.consecutiveFailures > 0) this.#record = { ...before, consecutiveFailures: 0 };
      return false;
    }
    const consecutiveFailures = before.consecutiveFailures + 1;
    this.#record = { ...before, consecutiveFailures };
    if (consecutiveFailures < settings.consecutive && !this.#exceedsFailureRate(settings)) return false;
    this.#record = this.#openRecord(now, settings.cooldownSeconds * 1000, this.#record);
    this.#clearWindow();
    return true;
  }

  /** The clock was set by `stepMs`: the next probe is as far away as before. */
  onClockStepped(stepMs: number): void {
    const { openedAt, nextProbeAt } = this.#record;
    if (openedAt === null || nextProbeAt === null) return;
    this.#record = { ...this.#record, openedAt: openedAt + stepMs, nextProbeAt: nextProbeAt + stepMs };
  }

  #openRecord(now: number, exactMs: number, before: BreakerRecord): BreakerRecord {
    // The column is an integer, but 1.005 s × 1000 is 1004.9999999999999.
    const cooldownMs = Math.max(1, Math.round(exactMs));
    return {
      circuit: 'open',
      consecutiveFailures: before.consecutiveFailures,
      openedAt: before.openedAt ?? now,
      cooldownMs,
      nextProbeAt: now + cooldownMs,
    };
  }

  #exceedsFailureRate(settings: BreakerSettings): boolean {
    if (this.#window === null) return false;
    const { totals, failures } = this.#window;
    let total = 0;
    let failed = 0;
    for (let i = 0; i < BUCKETS; i += 1) {
      total += totals[i]!;
      failed += failures[i]!;
    }
    return total >= settings.minRequests && failed / total >= settings.failureRate;
  }

  #countOutcome(failed: boolean, now: number): void {
    this.#window ??= { totals: new Uint32Array(BUCKETS), failures: new Uint32Array(BUCKETS) };
    const { totals, failures } = this.#window;
    const bucketMs = (this.#settings!.windowSeconds * 1000) / BUCKETS;
    const epoch = Math.floor(now / bucketMs);
    const newest = this.#bucketEpoch ?? Number.NEGATIVE_INFINITY;
    const steps = Math.min(epoch - newest, BUCKETS);
    for (let i = 0; i < steps; i += 1) {
      const bucket = (((epoch - i) % BUCKETS) + BUCKETS) % BUCKETS;
      totals[bucket] = 0;
      failures[bucket] = 0;
    }
    // If the clock went back, count into the newest bucket instead of clearing the window.
    const counted = Math.max(epoch, newest);
    this.#bucketEpoch = counted;
    const bucket = ((counted % BUCKETS) + BUCKETS) % BUCKETS;
    totals[bucket]! += 1;
    if (failed) failures[bucket]! += 1;
  }

  #clearWindow(): void {
    this.#window = null;
  }
}
