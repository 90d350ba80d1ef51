/** Spaces starts of the same kind: `burst` at once, then one per `intervalMs`. Times are monotonic, in milliseconds. */
export interface StartPacerOptions {
  readonly intervalMs: number;
  readonly burst: number;
  /** How many kinds are tracked. Beyond that, the oldest are dropped. */
  readonly maxKinds: number;
}

export class StartPacer {
  readonly #options: StartPacerOptions;
  /** By kind: when all starts so far would have ended, if each took `intervalMs`. */
  readonly #busyUntil = new Map<string, number>();

  constructor(options: StartPacerOptions) {
    this.#options = options;
  }

  /** How long a start of this kind would have to wait. */
  delayOf(kind: string, now: number): number {
    const { intervalMs, burst } = this.#options;
    return Math.max(0, (this.#busyUntil.get(kind) ?? 0) - (burst - 1) * intervalMs - now);
  }

  /** Counts a start of this kind. */
  count(kind: string, now: number): void {
    const { intervalMs, maxKinds } = this.#options;
    const busyUntil = Math.max(this.#busyUntil.get(kind) ?? 0, now) + intervalMs;
    this.#busyUntil.delete(kind);
    this.#busyUntil.set(kind, busyUntil);
    if (this.#busyUntil.size > maxKinds) this.#busyUntil.delete(this.#busyUntil.keys().next().value!);
  }
}
