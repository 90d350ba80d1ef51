/**
 * Lets equal values of many endpoints share one object. Most endpoints have the tenant and the event types of others.
 * Keeps a bounded number of values of bounded length; the rest are not shared.
 */
export class SharedValues {
  readonly #max: number;
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, readonly string[]>();

  constructor(max = 50_000) {
    this.#max = max;
  }

  shareText(value: string): string {
    return this.#share(this.#texts, value, value);
  }

  /** A long list is not shared: its key would take as much memory as the list, also after its last endpoint is gone. */
  shareList(values: readonly string[]): readonly string[] {
    if (values.length > MAX_LIST_LENGTH) return values;
    // A length before each text keeps ['a,b'] apart from ['a', 'b'].
    const key = values.map((value) => `${value.length}:${value}`).join();
    return key.length > MAX_KEY_LENGTH ? values : this.#share(this.#lists, key, values);
  }

  #share<T>(known: Map<string, T>, key: string, value: T): T {
    const shared = known.get(key);
    if (shared !== undefined) return shared;
    if (known.size < this.#max) known.set(key, value);
    return value;
  }
}

const MAX_LIST_LENGTH = 50;
/** Characters. 50,000 keys take 25 MB at most. */
const MAX_KEY_LENGTH = 500;
