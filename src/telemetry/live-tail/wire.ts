/** What processes tell each other about live tails, in the messages of PostgreSQL's NOTIFY. */
import type { TailFilter, TailMessage } from './message.ts';

/** PostgreSQL takes 7,999 bytes. */
const MOST_BYTES = 7_900;
/** More filters than these are announced as "everything". */
const MOST_FILTERS = 15;

export interface Batch {
  readonly from: string;
  readonly messages: readonly TailMessage[];
  /** How many were left out, by tenant. */
  readonly skipped: Readonly<Record<string, number>>;
}

/** In as many payloads as it takes. What does not fit into one by itself is left out. */
export function encodeBatch({ from, messages, skipped }: Batch): string[] {
  const frame = (parts: readonly string[], left: object): string =>
    `{"from":${JSON.stringify(from)},"messages":[${parts.join(',')}],"skipped":${JSON.stringify(left)}}`;
  const payloads: string[] = [];
  let left: object = skipped;
  let parts: string[] = [];
  let bytes = Buffer.byteLength(frame([], left));
  // Thousands of tenants: their numbers alone would not fit.
  if (bytes > MOST_BYTES) {
    left = {};
    bytes = Buffer.byteLength(frame([], left));
  }
  const empty = Buffer.byteLength(frame([], {}));
  for (const message of messages) {
    const part = JSON.stringify(message);
    const size = Buffer.byteLength(part) + 1;
    if (empty + size > MOST_BYTES) continue;
    if (bytes + size > MOST_BYTES) {
      payloads.push(frame(parts, left));
      left = {};
      parts = [];
      bytes = empty;
    }
    parts.push(part);
    bytes += size;
  }
  if (parts.length > 0 || Object.keys(left).length > 0) payloads.push(frame(parts, left));
  return payloads;
}

/** Throws at what is not one. */
export function decodeBatch(payload: string): Batch {
  const { from, messages, skipped } = JSON.parse(payload) as Record<keyof Batch, unknown>;
  if (
    typeof from !== 'string' ||
    !Array.isArray(messages) ||
    !messages.every(isMessage) ||
    !areCounts(skipped)
  )
    throw new TypeError('not a batch of messages');
  return { from, messages, skipped };
}

/** What a process wants to hear about; no filters: nothing any more. */
export interface Interest {
  readonly from: string;
  readonly filters: readonly TailFilter[];
}

export const EVERYTHING: TailFilter = { tenant: null, endpointId: null, type: null, outcome: null };

export function encodeInterest({ from, filters }: Interest): string {
  const distinct = [...new Set(filters.map((filter) => JSON.stringify(filter)))];
  const payload = `{"from":${JSON.stringify(from)},"filters":[${distinct.join(',')}]}`;
  if (distinct.length <= MOST_FILTERS && Buffer.byteLength(payload) <= MOST_BYTES) return payload;
  return JSON.stringify({ from, filters: [EVERYTHING] });
}

/** Throws at what is not one. */
export function decodeInterest(payload: string): Interest {
  const { from, filters } = JSON.parse(payload) as Record<keyof Interest, unknown>;
  if (typeof from !== 'string' || !Array.isArray(filters) || !filters.every(isFilter))
    throw new TypeError('not an interest');
  return { from, filters };
}

// Every role of the database may NOTIFY. What is not as it should be ends here: behind this, accepting would stumble over it.
const EVENTS: ReadonlySet<unknown> = new Set<TailMessage['event']>(['event.accepted', 'attempt', 'endpoint']);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isMessage = (value: unknown): value is TailMessage =>
  isObject(value) && EVENTS.has(value.event) && isObject(value.data);

const areCounts = (value: unknown): value is Batch['skipped'] =>
  isObject(value) && Object.values(value).every((count) => typeof count === 'number');

const isFilter = (value: unknown): value is TailFilter =>
  isObject(value) &&
  Object.keys(EVERYTHING).every((name) => value[name] === null || typeof value[name] === 'string');
