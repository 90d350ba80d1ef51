/** Lists by cursor: the first page is kept fresh, older ones are added as they are scrolled to. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { type ApiError, call, withQuery } from './client.ts';
import { asApiError, whileVisible } from './query.ts';
import type { Page } from './types.ts';

export interface PagedList<T> {
  readonly rows: readonly T[] | undefined;
  readonly hasMore: boolean;
  readonly loadingMore: boolean;
  readonly error: ApiError | null;
  loadMore(): void;
  refresh(): Promise<void>;
}

interface Loaded<T> {
  readonly path: string;
  readonly rows: readonly T[];
  readonly cursor: string | null;
}

const PAGE = 100;
/** So that going back to a list shows what was there, at the place where it was. */
const remembered = new Map<string, Loaded<unknown>>();
const REMEMBER_LISTS = 20;

export function usePages<T>(
  path: string,
  idOf: (row: T) => string,
  { pollMs = 0 }: { pollMs?: number } = {},
): PagedList<T> {
  const [loaded, setLoaded] = useState(() => remembered.get(path) as Loaded<T> | undefined);
  const [error, setError] = useState<ApiError | null>(null);
  const [loadingMore, setLoadingMore] = useState(false);
  const current = useRef<Loaded<T> | undefined>(loaded);
  const identify = useRef(idOf);

  const keep = useCallback((next: Loaded<T>): void => {
    current.current = next;
    remembered.delete(next.path);
    remembered.set(next.path, next);
    if (remembered.size > REMEMBER_LISTS) remembered.delete(remembered.keys().next().value!);
    setLoaded(next);
    setError(null);
  }, []);

  const refresh = useCallback(async (): Promise<void> => {
    try {
      const page = await call<Page<T>>('GET', limited(path, null));
      const before = current.current;
      keep(before?.path === path ? merge(before, page, identify.current) : toLoaded(path, page));
    } catch (failure) {
      setError(asApiError(failure));
    }
  }, [path, keep]);

  useEffect(() => {
    const known = remembered.get(path) as Loaded<T> | undefined;
    current.current = known;
    setLoaded(known);
    setError(null);
    return whileVisible(async () => {
      await refresh();
      return pollMs === 0 ? null : pollMs;
    });
  }, [path, pollMs, refresh]);

  const busy = useRef(false);
  const loadMore = useCallback((): void => {
    const before = current.current;
    if (busy.current || before === undefined || before.cursor === null) return;
    busy.current = true;
    setLoadingMore(true);
    call<Page<T>>('GET', limited(path, before.cursor))
      .then((page) => {
        const now = current.current;
        if (now?.path !== path) return;
        const known = new Set(now.rows.map(identify.current));
        const added = page.data.filter((row) => !known.has(identify.current(row)));
        keep({ path, rows: [...now.rows, ...added], cursor: page.next_cursor });
      })
      .catch((failure: unknown) => setError(asApiError(failure)))
      .finally(() => {
        busy.current = false;
        setLoadingMore(false);
      });
  }, [path, keep]);

  const shown = loaded?.path === path ? loaded : undefined;
  return {
    rows: shown?.rows,
    hasMore: shown !== undefined && shown.cursor !== null,
    loadingMore,
    error,
    loadMore,
    refresh,
  };
}

function limited(path: string, cursor: string | null): string {
  const [base = '', search = ''] = path.split('?');
  return withQuery(base, { ...Object.fromEntries(new URLSearchParams(search)), limit: PAGE, cursor });
}

const toLoaded = <T>(path: string, page: Page<T>): Loaded<T> => ({
  path,
  rows: page.data,
  cursor: page.next_cursor,
});

/** A new first page before what was loaded below it. If the two do not touch, the rest is loaded again when needed. */
export function merge<T>(before: Loaded<T>, page: Page<T>, idOf: (row: T) => string): Loaded<T> {
  const fresh = toLoaded(before.path, page);
  const last = page.data.at(-1);
  if (page.next_cursor === null || last === undefined) return fresh;
  const place = before.rows.findIndex((row) => idOf(row) === idOf(last));
  if (place === -1) return fresh;
  return { ...fresh, rows: [...page.data, ...before.rows.slice(place + 1)], cursor: before.cursor };
}
