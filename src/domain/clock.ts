/** All code takes the time from a `Clock`, so that tests and the simulation run weeks in milliseconds. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. May jump. */
  now(): number;
  /** For deadlines and durations: never goes back, and advances while the process is stopped by SIGSTOP. */
  monotonic(): number;
  /** Runs `task` once after `delayMs`. The returned function cancels it. Does not keep the process alive. */
  after(delayMs: number, task: () => void): () => void;
  /** False if the wall clock jumped lately and may be wrong: delete nothing because of its age. Absent: true. */
  readonly isSteady?: boolean;
  /** The wall clock, or a later time if the clock may be wrong. Data that is kept from this time on is kept long enough. Absent: `now`. */
  latestNow?(): number;
}

/** The time from which to compute how long something is kept. */
export const latestNowOf = (clock: Clock): number => clock.latestNow?.() ?? clock.now();

/** Node's timers overflow past 24.8 days and would fire immediately. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The network can make the database's clock seem to differ by up to this. */
const MAX_NOISE_MS = 100;
/** The time of an answer is uncertain by half of its round trip. */
const MAX_ROUND_TRIP_MS = 2 * MAX_NOISE_MS;
/** A larger difference is a jump: one of the clocks is wrong, or was. */
const MAX_CORRECTION_MS = 2_000;
/** The clock follows a jump after this time if this machine's clock jumped too, as after a suspend. */
const CONFIRM_TOGETHER_MS = 1_000;
/** The clock follows a jump that only the database's clock made after this time. Until then it continues as before. */
const CONFIRM_ALONE_MS = 15_000;
/** At the start a larger difference between the two clocks means that one of them is wrong. */
const MAX_FIRST_DIFFERENCE_MS = 3_600_000;
/** For this long after a jump, nothing is deleted because of its age. */
export const STEADY_AFTER_MS = 3_600_000;

export interface ClockJump {
  /** Which clock jumped. `both`: the clocks differ when the database first answers, and either can be wrong. */
  readonly clock: 'database' | 'machine' | 'both';
  readonly jumpMs: number;
}

/**
 * An estimate of the database's clock: its last confirmed answer plus the monotonic time since. With it, ids, due times
 * and expiry of all processes come from one clock. Before the first answer it is the machine's wall clock. Later a jump
 * of the wall clock has no effect, and a jump of the database's clock only when further answers confirm it: a glitch
 * would expire fresh deliveries and make ids for which there is no partition.
 */
export class DatabaseClock implements Clock {
  readonly #base: Clock;
  readonly #onJump: (jump: ClockJump) => void;
  /** What to add to the monotonic time. Null: the database has not answered yet. */
  #offsetMs: number | null = null;
  /** How far the wall clock was behind this clock at the last answer. */
  #machineBehindMs = 0;
  /** The offset of the latest time that this clock had before the jumps of the last hour. A step back may be wrong. */
  #latestOffsetMs = Number.NEGATIVE_INFINITY;
  #suspected: { readonly jumpMs: number; readonly since: number } | null = null;
  /** Monotonic time at which the database's clock last jumped, even if this clock did not follow the jump. */
  #jumpedAt = Number.NEGATIVE_INFINITY;
  readonly #stepListeners: ((stepMs: number) => void)[] = [];

  constructor(base: Clock, onJump: (jump: ClockJump) => void = () => {}) {
    this.#base = base;
    this.#onJump = onJump;
  }

  now(): number {
    return this.#offsetMs === null ? this.#base.now() : Math.floor(this.#base.monotonic() + this.#offsetMs);
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  after(delayMs: number, task: () => void): () => void {
    return this.#base.after(delayMs, task);
  }

  /** False for an hour after each jump of the database's clock, and after the two clocks differed at the start. */
  get isSteady(): boolean {
    return this.#suspected === null && this.monotonic() - this.#jumpedAt >= STEADY_AFTER_MS;
  }

  latestNow(): number {
    if (this.isSteady) return this.now();
    return Math.max(this.now(), this.#base.now(), Math.floor(this.monotonic() + this.#latestOffsetMs));
  }

  /** Calls `listener` after this clock has followed a jump of the database's clock, with the size of the jump. */
  onStepped(listener: (stepMs: number) => void): void {
    this.#stepListeners.push(listener);
  }

  /**
   * Corrects the clock by the time in an answer of the database, which took `roundTripMs`. Ignores differences of up to
   * 100 ms, which may come from the network. Once the offset is known, ignores slow answers: they could set the clock back.
   */
  correct(databaseNow: number, roundTripMs = 0): void {
    const measured = databaseNow + roundTripMs / 2;
    if (this.#offsetMs === null) return this.#setFirst(measured);
    if (roundTripMs > MAX_ROUND_TRIP_MS) return;
    const jumpMs = Math.round(measured - this.now());
    if (Math.abs(jumpMs) > MAX_CORRECTION_MS) return this.#suspect(jumpMs, measured);
    this.#suspected = null;
    this.#watchMachine();
    if (Math.abs(jumpMs) > MAX_NOISE_MS) this.#set(measured);
  }

  #setFirst(databaseNow: number): void {
    const differenceMs = Math.round(databaseNow - this.#base.now());
    this.#set(databaseNow);
    if (Math.abs(differenceMs) <= MAX_FIRST_DIFFERENCE_MS) return;
    this.#jumpedAt = this.monotonic();
    this.#onJump({ clock: 'both', jumpMs: differenceMs });
  }

  #set(databaseNow: number): void {
    const machineNow = this.#base.now();
    // Prefer the machine's clock if it is close enough: then all processes of the machine agree exactly.
    const now = Math.abs(databaseNow - machineNow) > MAX_NOISE_MS ? databaseNow : machineNow;
    this.#offsetMs = now - this.#base.monotonic();
    this.#machineBehindMs = now - machineNow;
    this.#suspected = null;
  }

  #suspect(jumpMs: number, measured: number): void {
    const now = this.#base.monotonic();
    if (this.isSteady) this.#latestOffsetMs = Number.NEGATIVE_INFINITY;
    this.#jumpedAt = now;
    if (this.#suspected === null || Math.abs(jumpMs - this.#suspected.jumpMs) > MAX_CORRECTION_MS) {
      this.#suspected = { jumpMs, since: now };
      this.#onJump({ clock: 'database', jumpMs });
      return;
    }
    const machineNow = this.#base.now() + this.#machineBehindMs;
    const hasMachineJumped = Math.abs(measured - machineNow) <= MAX_CORRECTION_MS;
    const confirmMs = hasMachineJumped ? CONFIRM_TOGETHER_MS : CONFIRM_ALONE_MS;
    if (now - this.#suspected.since < confirmMs) return;
    this.#latestOffsetMs = Math.max(this.#latestOffsetMs, this.#offsetMs!);
    this.#set(measured);
    for (const listener of this.#stepListeners) listener(jumpMs);
  }

  #watchMachine(): void {
    const behindMs = this.now() - this.#base.now();
    const jumpMs = Math.round(this.#machineBehindMs - behindMs);
    if (Math.abs(jumpMs) <= MAX_CORRECTION_MS) return;
    this.#machineBehindMs = behindMs;
    this.#onJump({ clock: 'machine', jumpMs });
  }
}
