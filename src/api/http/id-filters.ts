/** Filters of lists that become bounds of ids. Ids are ordered by time, so one index serves all of them. */
import { deliveryRangeOfEvent, firstIdAt, idPrefixes, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { invalidField } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import type { IdRange } from '../../postgres/queries/list-query.ts';
import { readCursor } from './pagination.ts';

const NAMES = { ep: 'an endpoint id', evt: 'an event id', dlv: 'a delivery id' };

/** The UUID behind a public id. Throws `invalid` for the field `path`. */
export function parseId(text: string, path: string, prefix: keyof typeof NAMES): Uuid {
  const id = parsePublicId(prefix, text);
  if (id === null) throw invalidField(path, `must be ${NAMES[prefix]} (${prefix}_…)`);
  return id;
}

/** The fields of a query that bound the ids of deliveries. */
interface BoundingQuery {
  readonly cursor?: string;
  readonly event_id?: string;
  readonly since?: string;
  readonly until?: string;
}

/** The ids of deliveries that a cursor, an event and a time range leave. */
export function idBounds(query: BoundingQuery): IdRange {
  const lower: Uuid[] = [];
  const upper: Uuid[] = [];
  const cursor = readCursor(idPrefixes.delivery, query.cursor);
  if (cursor !== null) upper.push(cursor);
  if (query.event_id !== undefined) {
    const [first, last] = deliveryRangeOfEvent(parseId(query.event_id, 'event_id', idPrefixes.event));
    lower.push(first);
    upper.push(idAfter(last));
  }
  const since = readTime('since', query.since);
  const until = readTime('until', query.until);
  if (since !== null) lower.push(firstIdAt(since));
  if (until !== null) upper.push(firstIdAt(until));
  return { from: lower.toSorted().at(-1) ?? null, before: upper.toSorted()[0] ?? null };
}

/** The smaller of two exclusive upper bounds; null is no bound. */
export function earlierBound(a: Uuid | null, b: Uuid | null): Uuid | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

const LARGEST_ID = 2n ** 128n - 1n;

/** The next larger UUID. The largest one has none, and no row has it as its id: the id itself is returned. */
function idAfter(id: Uuid): Uuid {
  const number = BigInt(`0x${id.replaceAll('-', '')}`);
  const digits = (number < LARGEST_ID ? number + 1n : number).toString(16).padStart(32, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}
