/**
 * Lets equal values of many endpoints share one object. Most endpoints have the tenant and the event types of others.
 * Keeps a bounded number of values; the rest are not shared.
 */
export class SharedValues {
  readonly #max: number;
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, readonly string[]>();

  constructor(max = 50_000) {
    this.#max = max;
  }

  text(value: string): string {
    return this.#share(this.#texts, value, value);
  }

  list(values: readonly string[]): readonly string[] {
    // A length before each text keeps ['a,b'] apart from ['a', 'b'].
    const key = values.map((value) => `${value.length}:${value}`).join();
    return this.#share(this.#lists, key, values);
  }

  #share<T>(known: Map<string, T>, key: string, value: T): T {
    const shared = known.get(key);
    if (shared !== undefined) return shared;
    if (known.size < this.#max) known.set(key, value);
    return value;
  }
}
