/** Pages of objects that have a name instead of an id. Their cursor is the creation time and name of the last one. */
import { badCursor, type Page } from './pagination.ts';
import { isStorable } from './read-json.ts';

export interface NamedCursor {
  /** When the last object of the previous page was created. */
  readonly at: Date;
  readonly name: string;
}

const CURSOR = /^(\d{1,15}) (.+)$/s;

export function readNamedCursor(cursor: string | undefined): NamedCursor | null {
  if (cursor === undefined) return null;
  const [, at, name] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (at === undefined || name === undefined || !isStorable(name)) throw badCursor();
  return { at: new Date(Number(at)), name };
}

/** Turns rows into a page. Query one row more than `limit`: it shows that there is another page. */
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
