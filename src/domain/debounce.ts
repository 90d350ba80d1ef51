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
const LONG_NUMBER_BYTES = 16;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The bytes that numbers consist of. Letters of `true` and `false` are among them, but never sixteen in a row. */
const isNumberByte = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b ||
    (byte | 0x20) === 0x65);

/**
 * Returns JSON in which the numbers that JavaScript rounds are objects with their digits, so that two long ids are never the
 * same key. A reviver would do the same, but takes 150 ms for an event with 100,000 values.
 */
function keepLongNumbers(json: Buffer): string {
  const parts: string[] = [];
  let copiedTo = 0;
  for (let at = 0; at < json.length; at += 1) {
    if (json[at] === QUOTE) at = endOfString(json, at);
    if (!isNumberByte(json[at])) continue;
    const start = at;
    while (isNumberByte(json[at + 1])) at += 1;
    if (at - start + 1 < LONG_NUMBER_BYTES) continue;
    const number = json.toString('latin1', start, at + 1);
    if (Number.isSafeInteger(Number(number)) || !LONG_NUMBER.test(number)) continue;
    parts.push(json.toString('utf8', copiedTo, start), `{"number":"${number}"}`);
    copiedTo = at + 1;
  }
  return parts.join('') + json.toString('utf8', copiedTo);
}

/** Returns where the string that begins at `start` ends: the place of its closing quote. */
function endOfString(json: Buffer, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}

/**
 * Reads the keys of one event, for several endpoints. Parses `data` at most once, and hashes the value of a path once: a
 * tenant may have thousands of endpoints with the same path, and the value may be the whole event.
 */
export class DebounceKeys {
  readonly #json: Buffer;
  readonly #keys = new Map<string, string | null>();
  #data: unknown;
  #isParsed = false;

  constructor(data: Buffer) {
    this.#json = data;
  }

  /** Returns the key: a hash of the value at the path. Null: there is no value, so the event is sent as it is. */
  keyOf({ key: path }: Pick<DebounceSettings, 'key'>): string | null {
    let key = this.#keys.get(path);
    if (key === undefined) {
      key = this.#hash(path);
      this.#keys.set(path, key);
    }
    return key;
  }

  #hash(path: string): string | null {
    let value = this.#parsed;
    for (const name of path.split('.').slice(1)) {
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
      this.#data = JSON.parse(keepLongNumbers(this.#json));
    } catch {
      this.#data = null;
    }
    return this.#data;
  }
}
