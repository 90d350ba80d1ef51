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

export function decodeBatch(payload: string): Batch | null {
  const batch = JSON.parse(payload) as Partial<Batch>;
  return Array.isArray(batch.messages) ? { from: '', skipped: {}, ...batch, messages: batch.messages } : null;
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

export function decodeInterest(payload: string): Interest | null {
  const { from, filters } = JSON.parse(payload) as Partial<Interest>;
  return typeof from === 'string' && Array.isArray(filters) ? { from, filters } : null;
}
