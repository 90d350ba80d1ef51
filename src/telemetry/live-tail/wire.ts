/** The messages between processes about live tails, within the limits of PostgreSQL's NOTIFY. */
import type { TailFilter, TailMessage } from './message.ts';

/** PostgreSQL takes 7,999 bytes. */
const MAX_BYTES = 7_900;
/** More filters than this are announced as one that matches everything. */
const MAX_FILTERS = 15;

export interface TailBatch {
  readonly from: string;
  readonly messages: readonly TailMessage[];
  /** How many messages were left out, by tenant. */
  readonly skipped: Readonly<Record<string, number>>;
}

/** Splits a batch into payloads. A message that is too large for one is left out. */
export function encodeBatch({ from, messages, skipped }: TailBatch): string[] {
  const frame = (parts: readonly string[], left: object): string =>
    `{"from":${JSON.stringify(from)},"messages":[${parts.join(',')}],"skipped":${JSON.stringify(left)}}`;
  const payloads: string[] = [];
  let left: object = skipped;
  let parts: string[] = [];
  let bytes = Buffer.byteLength(frame([], left));
  // The counts of thousands of tenants alone would not fit.
  if (bytes > MAX_BYTES) {
    left = {};
    bytes = Buffer.byteLength(frame([], left));
  }
  const empty = Buffer.byteLength(frame([], {}));
  for (const message of messages) {
    const part = JSON.stringify(message);
    const size = Buffer.byteLength(part) + 1;
    if (empty + size > MAX_BYTES) continue;
    if (bytes + size > MAX_BYTES) {
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

/** Throws if the payload is invalid. */
export function decodeBatch(payload: string): TailBatch {
  const { from, messages, skipped } = JSON.parse(payload) as Record<keyof TailBatch, unknown>;
  if (
    typeof from !== 'string' ||
    !Array.isArray(messages) ||
    !messages.every(isMessage) ||
    !areCounts(skipped)
  )
    throw new TypeError('not a batch of messages');
  return { from, messages, skipped };
}

/** The filters of a process. None: it has no watchers any more. */
export interface Interest {
  readonly from: string;
  readonly filters: readonly TailFilter[];
}

export const EVERYTHING: TailFilter = { tenant: null, endpointId: null, type: null, outcome: null };

export function encodeInterest({ from, filters }: Interest): string {
  const distinct = [...new Set(filters.map((filter) => JSON.stringify(filter)))];
  const payload = `{"from":${JSON.stringify(from)},"filters":[${distinct.join(',')}]}`;
  if (distinct.length <= MAX_FILTERS && Buffer.byteLength(payload) <= MAX_BYTES) return payload;
  return JSON.stringify({ from, filters: [EVERYTHING] });
}

/** Throws if the payload is invalid. */
export function decodeInterest(payload: string): Interest {
  const { from, filters } = JSON.parse(payload) as Record<keyof Interest, unknown>;
  if (typeof from !== 'string' || !Array.isArray(filters) || !filters.every(isFilter))
    throw new TypeError('not an interest');
  return { from, filters };
}

// Every role of the database may NOTIFY, so payloads can be invalid. Refuse them here: an invalid filter would make accepting
// events fail.
const EVENTS: ReadonlySet<unknown> = new Set<TailMessage['event']>(['event.accepted', 'attempt', 'endpoint']);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isMessage = (value: unknown): value is TailMessage =>
  isObject(value) && EVENTS.has(value.event) && isObject(value.data);

const areCounts = (value: unknown): value is TailBatch['skipped'] =>
  isObject(value) && Object.values(value).every((count) => typeof count === 'number');

const isFilter = (value: unknown): value is TailFilter =>
  isObject(value) &&
  Object.keys(EVERYTHING).every((name) => value[name] === null || typeof value[name] === 'string');
