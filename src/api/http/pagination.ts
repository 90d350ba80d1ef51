import { Type } from 'typebox';
import { EVENT_TYPE, MAX_EVENT_TYPE_LENGTH, TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import { type IdPrefix, parsePublicId, publicId, type Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { says } from './validation.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 250;

export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIMIT,
      default: DEFAULT_LIMIT,
      description: 'How many, at most.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 200, description: 'Where the page before ended: its next_cursor.' }),
  ),
};

/** What can be no tenant would find nothing, and nobody would be told why. */
export const tenantFilter = (description: string) =>
  Type.Optional(
    Type.String({ pattern: TENANT_ID.source, description, examples: ['acme'], ...says(TENANT_ID_RULE) }),
  );

/** One type: a pattern, as endpoints have them, would find nothing. */
export const typeFilter = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: EVENT_TYPE.source,
      maxLength: MAX_EVENT_TYPE_LENGTH,
      description,
      examples: ['order.created'],
      ...says(
        'must be one exact event type, such as "order.created"; wildcards are for `events` of an endpoint only',
      ),
    }),
  );

/** What lists are narrowed by. Text is looked for as it stands; times are read by `readTime`. */
export const ListFilters = {
  tenant: tenantFilter('Of this tenant only.'),
  endpoint_id: Type.Optional(Type.String({ description: 'To this endpoint only.' })),
  event_id: Type.Optional(Type.String({ description: 'Of this event only.' })),
  type: typeFilter('Of this event type only.'),
  since: Type.Optional(Type.String({ description: 'Accepted at or after this RFC 3339 time.' })),
  until: Type.Optional(Type.String({ description: 'Accepted before this RFC 3339 time.' })),
};

export interface Page<T> {
  readonly data: T[];
  readonly next_cursor: string | null;
}

/**
 * A cursor is the id of the last row shown. Ids are ordered by time and never change, so nothing is shown twice and
 * nothing is left out while rows are being added.
 */
export function readCursor(prefix: IdPrefix, cursor: string | undefined): Uuid | null {
  if (cursor === undefined) return null;
  const id = parsePublicId(prefix, cursor);
  if (id === null)
    throw new Problem('bad_cursor', 'cursor: must be the next_cursor of an earlier page of this list.', {
      errors: [{ path: 'cursor', message: 'must be the next_cursor of an earlier page of this list' }],
    });
  return id;
}

/**
 * Of one row more than was asked for: the page, and whether there is another. `resumeAt`: these are not all, although
 * they do not fill the page, since a request looks at so many rows and no more.
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
