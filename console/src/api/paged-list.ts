/** Lists with a cursor: polling refreshes the first page, scrolling appends older pages. */
import type { Page } from '@posthorn/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { type ApiError, callApi, withQuery } from './client.ts';
import { asApiError, pollWhileVisible } from './query.ts';

export interface PagedList<T> {
  readonly rows: readonly T[] | undefined;
  readonly hasMore: boolean;
  /** Where the next page begins. Null on the last page. */
  readonly cursor: string | null;
  readonly isLoadingMore: boolean;
  readonly error: ApiError | null;
  loadMore(): void;
  refresh(): Promise<void>;
}

interface LoadedRows<T> {
  readonly path: string;
  readonly rows: readonly T[];
  readonly cursor: string | null;
}

const PAGE_SIZE = 100;
/** Rows by path. Going back to a list shows the rows it had, so the scroll position stays valid. */
const cache = new Map<string, LoadedRows<unknown>>();
const MAX_CACHED_LISTS = 20;

function cacheRows(loaded: LoadedRows<unknown>): void {
  cache.delete(loaded.path);
  cache.set(loaded.path, loaded);
  if (cache.size > MAX_CACHED_LISTS) cache.delete(cache.keys().next().value!);
}

export function usePagedList<T>(
  path: string,
  getId: (row: T) => string,
  { pollMs = 0 }: { pollMs?: number } = {},
): PagedList<T> {
  const [loaded, setLoaded] = useState(() => cache.get(path) as LoadedRows<T> | undefined);
  const [error, setError] = useState<ApiError | null>(null);
  const [isLoadingMore, setLoadingMore] = useState(false);
  const current = useRef<LoadedRows<T> | undefined>(loaded);
  const getIdRef = useRef(getId);

  const keepRows = useCallback((next: LoadedRows<T>): void => {
    current.current = next;
    cacheRows(next);
    setLoaded(next);
    setError(null);
  }, []);

  const refresh = useCallback(async (): Promise<void> => {
    try {
      const page = await callApi<Page<T>>('GET', buildPagePath(path, null));
      const before = current.current;
      keepRows(
        before?.path === path ? mergeFirstPage(before, page, getIdRef.current) : toLoadedRows(path, page),
      );
    } catch (failure) {
      setError(asApiError(failure));
    }
  }, [path, keepRows]);

  useEffect(() => {
    const cached = cache.get(path) as LoadedRows<T> | undefined;
    current.current = cached;
    setLoaded(cached);
    setError(null);
    return pollWhileVisible(async () => {
      await refresh();
      return pollMs === 0 ? null : pollMs;
    });
  }, [path, pollMs, refresh]);

  const isLoadingRef = useRef(false);
  const loadMore = useCallback((): void => {
    const before = current.current;
    if (isLoadingRef.current || before === undefined || before.cursor === null) return;
    isLoadingRef.current = true;
    setLoadingMore(true);
    callApi<Page<T>>('GET', buildPagePath(path, before.cursor))
      .then((page) => {
        const now = current.current;
        if (now?.path === path) keepRows(appendPage(now, page, getIdRef.current));
      })
      .catch((failure: unknown) => setError(asApiError(failure)))
      .finally(() => {
        isLoadingRef.current = false;
        setLoadingMore(false);
      });
  }, [path, keepRows]);

  const shown = loaded?.path === path ? loaded : undefined;
  return {
    rows: shown?.rows,
    hasMore: shown !== undefined && shown.cursor !== null,
    cursor: shown?.cursor ?? null,
    isLoadingMore,
    error,
    loadMore,
    refresh,
  };
}

function buildPagePath(path: string, cursor: string | null): string {
  const [base = '', search = ''] = path.split('?');
  return withQuery(base, { ...Object.fromEntries(new URLSearchParams(search)), limit: PAGE_SIZE, cursor });
}

const toLoadedRows = <T>(path: string, page: Page<T>): LoadedRows<T> => ({
  path,
  rows: page.data,
  cursor: page.next_cursor,
});

function appendPage<T>(loaded: LoadedRows<T>, page: Page<T>, getId: (row: T) => string): LoadedRows<T> {
  const known = new Set(loaded.rows.map(getId));
  const added = page.data.filter((row) => !known.has(getId(row)));
  return { ...loaded, rows: [...loaded.rows, ...added], cursor: page.next_cursor };
}

/**
 * Puts a fresh first page before the older rows. If the two do not overlap, rows between them are unknown: only the
 * fresh page is returned, and scrolling loads the rest again.
 */
export function mergeFirstPage<T>(
  before: LoadedRows<T>,
  page: Page<T>,
  getId: (row: T) => string,
): LoadedRows<T> {
  const fresh = toLoadedRows(before.path, page);
  const last = page.data.at(-1);
  if (page.next_cursor === null || last === undefined) return fresh;
  const overlap = before.rows.findIndex((row) => getId(row) === getId(last));
  if (overlap === -1) return fresh;
  return { ...fresh, rows: [...page.data, ...before.rows.slice(overlap + 1)], cursor: before.cursor };
}
