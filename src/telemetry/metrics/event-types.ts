/** Keeps counts for each of the first event types, and one for all others, so that the number of series is bounded. */
export const OTHER = 'other';

export class ByEventType<T> {
  readonly #max: number;
  readonly #make: () => T;
  readonly #known = new Map<string, T>();
  #other: T | null = null;

  constructor(max: number, make: () => T) {
    this.#max = max;
    this.#make = make;
  }

  of(type: string): T {
    const known = this.#known.get(type);
    if (known !== undefined) return known;
    if (this.#known.size >= this.#max) {
      this.#other ??= this.#make();
      return this.#other;
    }
    const made = this.#make();
    this.#known.set(type, made);
    return made;
  }

  *entries(): Iterable<[string, T]> {
    yield* this.#known;
    if (this.#other !== null) yield [OTHER, this.#other];
  }
}
