/** Pages of what has a name instead of an id: a cursor is when the last one shown was made, and its name. */
import { Problem } from '../../domain/problem.ts';
import type { Page } from './pagination.ts';
import { isStorable } from './read-json.ts';

export interface NamedCursor {
  readonly at: Date;
  readonly name: string;
}

const CURSOR = /^(\d{1,15}) (.+)$/s;

export function readNamedCursor(cursor: string | undefined): NamedCursor | null {
  if (cursor === undefined) return null;
  const [, at, name] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (at === undefined || name === undefined || !isStorable(name))
    throw new Problem('bad_cursor', 'cursor: must be the next_cursor of an earlier page of this list.', {
      errors: [{ path: 'cursor', message: 'must be the next_cursor of an earlier page of this list' }],
    });
  return { at: new Date(Number(at)), name };
}

/** Of one row more than was asked for: the page, and whether there is another. */
export function toNamedPage<Row extends { created_at: Date }, T>(
  rows: readonly Row[],
  limit: number,
  nameOf: (row: Row) => string,
  show: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const cursor = last && Buffer.from(`${last.created_at.getTime()} ${nameOf(last)}`).toString('base64url');
  return { data: shown.map(show), next_cursor: rows.length > limit ? (cursor ?? null) : null };
}
