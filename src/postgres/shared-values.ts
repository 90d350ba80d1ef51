/**
 * Lets equal values of many endpoints share one object. Most endpoints have the tenant, the event types and the
 * settings of others.
 * Keeps a bounded number of values of bounded length; the rest are not shared.
 */
import { type EndpointConfig, type EndpointSettings, resolveSettings } from '../domain/endpoint-config.ts';

export class SharedValues {
  readonly #max: number;
  readonly #settings = new Map<string, EndpointSettings>();
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

  /** Returns the settings of a configuration without secrets. Equal configurations share one object, unless they are long. */
  shareSettings(config: EndpointConfig): EndpointSettings {
    const key = JSON.stringify(config);
    if (key.length > MAX_KEY_LENGTH) return resolveSettings(config);
    return this.#settings.get(key) ?? this.#share(this.#settings, key, resolveSettings(config));
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
