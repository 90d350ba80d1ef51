/**
 * Debounce: of the events with the same key that arrive within a window, an endpoint gets only the last or the first one
 * (docs/shaping.md). Pure: the settings, and the key of an event.
 */
import { createHash } from 'node:crypto';

export const debounceModes = ['last', 'first'] as const;
export type DebounceMode = (typeof debounceModes)[number];

/** The setting as the user gave it. */
export interface DebounceConfig {
  key: string;
  window_ms: number;
  mode?: DebounceMode;
  max_wait_ms?: number;
}

export interface DebounceSettings {
  /** A path into the event, such as `data.order_id`. */
  readonly key: string;
  readonly windowMs: number;
  readonly mode: DebounceMode;
  /** Mode `last`: the longest time from the first superseded event until one is sent. */
  readonly maxWaitMs: number;
}

export const MAX_DEBOUNCE_WINDOW_MS = 3_600_000;
export const MAX_DEBOUNCE_WAIT_MS = 86_400_000;
/** The default of `max_wait_ms`, in windows. */
const DEFAULT_WINDOWS_WAITED = 10;

/** `data` and at least one name below it. Names have no dots. */
export const DEBOUNCE_KEY = /^data(\.[^.]{1,128}){1,16}$/;
export const DEBOUNCE_KEY_RULE = 'must be a path below "data", such as "data.order_id"';

export function resolveDebounce(config: DebounceConfig | undefined): DebounceSettings | null {
  if (config === undefined) return null;
  return {
    key: config.key,
    windowMs: config.window_ms,
    mode: config.mode ?? 'last',
    maxWaitMs:
      config.max_wait_ms ?? Math.min(DEFAULT_WINDOWS_WAITED * config.window_ms, MAX_DEBOUNCE_WAIT_MS),
  };
}

/** The most that a key waits in addition to the window, as a share of the window. */
const MAX_SPREAD = 0.25;

/**
 * Mode `last`: how long after its acceptance an event is sent if no other one of its key arrives. Each key waits a little longer than
 * the window, always by the same share of it. Otherwise many keys whose events arrive together would be sent together.
 */
export function debounceWindowOf(
  { windowMs, maxWaitMs }: Pick<DebounceSettings, 'windowMs' | 'maxWaitMs'>,
  key: string,
): number {
  // The key is a hash, so its first bytes are as good as random.
  const share = Buffer.from(key, 'base64url').readUInt32BE(0) / 2 ** 32;
  const spreadMs = Math.floor(share * MAX_SPREAD * windowMs);
  return Math.min(windowMs + spreadMs, maxWaitMs);
}

/** Numbers with fewer digits are exact. */
const LONG_NUMBER = /\d{16}/;

/** Keeps the digits of a number that JavaScript rounds, so that two long ids are never the same key. */
function keepLongNumber(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined || Number.isSafeInteger(value)) return value;
  return LONG_NUMBER.test(source) ? { number: source } : value;
}

/** Reads the keys of one event, for several endpoints. Parses `data` at most once. */
export class DebounceKeys {
  readonly #text: Buffer;
  #data: unknown;
  #isParsed = false;

  constructor(data: Buffer) {
    this.#text = data;
  }

  /** Returns the key: a hash of the value at the path. Null: there is no value, so the event is sent as it is. */
  keyOf({ key }: Pick<DebounceSettings, 'key'>): string | null {
    let value = this.#parsed;
    for (const name of key.split('.').slice(1)) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
      value = (value as Record<string, unknown>)[name];
    }
    if (value === null || value === undefined) return null;
    // A hash, because the value may be long.
    return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
  }

  get #parsed(): unknown {
    if (this.#isParsed) return this.#data;
    this.#isParsed = true;
    try {
      const text = this.#text.toString('utf8');
      this.#data = LONG_NUMBER.test(text) ? JSON.parse(text, keepLongNumber) : JSON.parse(text);
    } catch {
      this.#data = null;
    }
    return this.#data;
  }
}
