import { Type } from 'typebox';
import { EVENT_TYPE, MAX_EVENT_TYPE_LENGTH, TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import {
  type IdPrefix,
  idPattern,
  idPrefixes,
  parsePublicId,
  publicId,
  type Uuid,
} from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { RFC3339, TIME_RULE } from '../../domain/time.ts';
import { withMessage } from './validation.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 250;

export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIMIT,
      default: DEFAULT_LIMIT,
      description: 'Maximum number of objects in the page.',
    }),
  ),
  cursor: cursorField('^[A-Za-z0-9_-]*$'),
};

/** The pattern is for the OpenAPI document: the routes refuse other cursors with `bad_cursor`. */
export function cursorField(pattern: string) {
  const description = 'The `next_cursor` of the previous page.';
  return Type.Optional(Type.String({ maxLength: 200, pattern, description }));
}

/** The pattern is checked, because an impossible tenant would silently find nothing. */
export const tenantFilter = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: TENANT_ID.source,
      description,
      examples: ['acme'],
      ...withMessage(TENANT_ID_RULE),
    }),
  );

/** One exact type. Patterns such as `order.*` are refused, because they would silently find nothing. */
export const typeFilter = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: EVENT_TYPE.source,
      maxLength: MAX_EVENT_TYPE_LENGTH,
      description,
      examples: ['order.created'],
      ...withMessage(
        'must be one exact event type, such as "order.created"; wildcards are for `events` of an endpoint only',
      ),
    }),
  );

/** The pattern is for the OpenAPI document: `readTime` also checks the day of the month. */
export function timeFilter(description: string) {
  const options = { pattern: RFC3339.source, description, examples: ['2027-01-31T12:00:00Z'] };
  return Type.Optional(Type.String({ ...options, ...withMessage(TIME_RULE) }));
}

export function idFilter(prefix: IdPrefix, what: string, description: string) {
  const options = {
    pattern: idPattern(prefix),
    description,
    ...withMessage(`must be ${what} (${prefix}_…)`),
  };
  return Type.Optional(Type.String(options));
}

/** Filters of lists. Text matches exactly; `readTime` reads the times. */
export const ListFilters = {
  tenant: tenantFilter('Selects only what belongs to this tenant.'),
  endpoint_id: idFilter(idPrefixes.endpoint, 'an endpoint id', 'Selects only deliveries to this endpoint.'),
  event_id: idFilter(idPrefixes.event, 'an event id', 'Selects only deliveries of this event.'),
  type: typeFilter('Selects only events of this type, or deliveries of such events.'),
  since: timeFilter('Selects what Posthorn accepted at or after this RFC 3339 time.'),
  until: timeFilter('Selects what Posthorn accepted before this RFC 3339 time.'),
};

export interface Page<T> {
  readonly data: T[];
  readonly next_cursor: string | null;
}

/**
 * The id in a cursor, which is that of the last row shown. Ids are ordered by time and never change, so rows that are
 * added meanwhile neither repeat nor hide others. Throws `bad_cursor`.
 */
export function readCursor(prefix: IdPrefix, cursor: string | undefined): Uuid | null {
  if (cursor === undefined) return null;
  const id = parsePublicId(prefix, cursor);
  if (id === null) throw badCursor();
  return id;
}

/**
 * Turns rows into a page. Query one row more than `limit`: it shows that there is another page. `resumeAt` is where the
 * query stopped if it hit its limit of examined rows before it filled the page.
 */
export function toPage<Row extends { id: Uuid }, T>(
  rows: readonly Row[],
  limit: number,
  prefix: IdPrefix,
  show: (row: Row) => T,
  resumeAt: Uuid | null = null,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? (shown.at(-1)?.id ?? null) : resumeAt;
  return { data: shown.map(show), next_cursor: last && publicId(prefix, last) };
}

export function badCursor(): Problem {
  const message = 'must be the next_cursor of an earlier page of this list';
  return new Problem('bad_cursor', `cursor: ${message}.`, { errors: [{ path: 'cursor', message }] });
}
