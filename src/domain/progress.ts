import type { Clock } from './clock.ts';

/**
 * Whether calls of one kind succeed. They stall if none has succeeded since a call that began long ago. A call for a single
 * subject (an endpoint, a tenant) may fail for a reason of its own, such as a locked row: it shows a stall only together
 * with a call for another subject. After a while without calls, the state is unknown.
 */
const FORGET_MS = 30_000;

export class Progress {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #needsSubjects: number;
  readonly #subjects = new Set<string>();
  /** When the first call began that no success has followed. */
  #waitingSince: number | null = null;
  #pendingCalls = 0;
  #lastEndAt = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, { needsSubjects }: { readonly needsSubjects: 0 | 2 }) {
    this.#clock = clock;
    this.#needsSubjects = needsSubjects;
  }

  /** How long calls have not succeeded. 0: the last one did, or there was none. */
  get stalledForMs(): number {
    if (this.#waitingSince === null || this.#subjects.size < this.#needsSubjects) return 0;
    const now = this.#clock.monotonic();
    return this.#pendingCalls === 0 && now - this.#lastEndAt > FORGET_MS ? 0 : now - this.#waitingSince;
  }

  /** Runs `call`, and records whether it succeeds. */
  async watch<T>(subjects: Iterable<string>, call: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic();
    const isForgotten = this.#pendingCalls === 0 && startedAt - this.#lastEndAt > FORGET_MS;
    if (isForgotten) this.#reset();
    this.#waitingSince ??= startedAt;
    if (this.#subjects.size < this.#needsSubjects)
      for (const subject of subjects) this.#subjects.add(subject);
    this.#pendingCalls += 1;
    try {
      const result = await call();
      this.#reset();
      return result;
    } finally {
      this.#pendingCalls -= 1;
      this.#lastEndAt = this.#clock.monotonic();
    }
  }

  #reset(): void {
    this.#waitingSince = null;
    this.#subjects.clear();
  }
}
