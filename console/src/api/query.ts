/**
 * Cached GET requests: one cache entry per path, shared by all components that read it, refreshed while the page is
 * visible. A component shows the cached response at once and replaces it when the new one arrives.
 */
import { useCallback, useEffect, useSyncExternalStore } from 'react';
import { ApiError, callApi, sendRequest } from './client.ts';
import { forgetOlderEndpoints } from './older-endpoints.ts';

export interface Query<T> {
  readonly data: T | undefined;
  readonly error: ApiError | null;
  refresh(): Promise<void>;
}

interface Snapshot {
  readonly data: unknown;
  readonly error: ApiError | null;
}

interface CacheEntry {
  snapshot: Snapshot;
  request: Promise<void> | null;
  readonly listeners: Set<() => void>;
}

const EMPTY: Snapshot = { data: undefined, error: null };
const MAX_ENTRIES = 300;
const MIN_POLL_AFTER_ERROR_MS = 5_000;
const entries = new Map<string, CacheEntry>();

function getEntry(path: string): CacheEntry {
  let entry = entries.get(path);
  if (entry === undefined) {
    entry = { snapshot: EMPTY, request: null, listeners: new Set() };
    if (entries.size >= MAX_ENTRIES) evictUnused();
    entries.set(path, entry);
  }
  return entry;
}

function evictUnused(): void {
  for (const [path, { listeners }] of entries) if (listeners.size === 0) entries.delete(path);
}

/** Fetches a path once, also if several components ask at the same time. Never rejects: errors go into the snapshot. */
function load(path: string): Promise<void> {
  const entry = getEntry(path);
  entry.request ??= fetchPath(path)
    .then(
      (data): Snapshot => ({ data, error: null }),
      (error: unknown): Snapshot => ({ data: entry.snapshot.data, error: asApiError(error) }),
    )
    .then((snapshot) => {
      entry.request = null;
      entry.snapshot = snapshot;
      for (const listener of entry.listeners) listener();
    });
  return entry.request;
}

const TEXT_PREFIX = 'text:';
/** Marks a path whose response is read as text, so that numbers too large for JavaScript keep their digits. */
export const asText = (path: string): string => TEXT_PREFIX + path;

async function fetchPath(path: string): Promise<unknown> {
  if (!path.startsWith(TEXT_PREFIX)) return callApi('GET', path);
  return (await sendRequest('GET', path.slice(TEXT_PREFIX.length))).text();
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, 'unknown', error instanceof Error ? error.message : String(error));
}

/** Call after a change: fetches again every visible path that starts with one of the prefixes, and drops hidden ones. */
export function invalidate(...prefixes: string[]): void {
  if (prefixes.includes('/v1/endpoints')) forgetOlderEndpoints();
  for (const [path, entry] of entries) {
    if (!prefixes.some((prefix) => path.replace(TEXT_PREFIX, '').startsWith(prefix))) continue;
    if (entry.listeners.size === 0) entries.delete(path);
    else void load(path);
  }
}

export function clearQueries(): void {
  forgetOlderEndpoints();
  entries.clear();
}

/** Reads a path, and polls it if `pollMs` is set. With a null path it does nothing. */
export function useQuery<T>(path: string | null, { pollMs = 0 } = {}): Query<T> {
  const subscribe = useCallback(
    (listener: () => void) => {
      if (path === null) return () => {};
      const { listeners } = getEntry(path);
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [path],
  );
  const snapshot = useSyncExternalStore(subscribe, () => (path === null ? EMPTY : getEntry(path).snapshot));

  useEffect(() => {
    if (path === null) return;
    return pollWhileVisible(async () => {
      await load(path);
      if (pollMs === 0) return null;
      return getEntry(path).snapshot.error === null ? pollMs : Math.max(pollMs, MIN_POLL_AFTER_ERROR_MS);
    });
  }, [path, pollMs]);

  const refresh = useCallback(async () => {
    if (path !== null) await load(path);
  }, [path]);
  return { data: snapshot.data as T | undefined, error: snapshot.error, refresh };
}

/**
 * Runs the task now, and again after the pause it returns (null: never). Pauses while the tab is hidden.
 * Returns a function that stops it.
 */
export function pollWhileVisible(task: () => Promise<number | null>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStopped = false;
  let isPostponed = false;
  const run = async (): Promise<void> => {
    isPostponed = false;
    const pauseMs = await task();
    if (isStopped || pauseMs === null) return;
    if (document.hidden) isPostponed = true;
    else timer = setTimeout(() => void run(), pauseMs);
  };
  const onVisibilityChange = (): void => {
    if (isPostponed && !document.hidden) void run();
  };
  document.addEventListener('visibilitychange', onVisibilityChange);
  void run();
  return () => {
    isStopped = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisibilityChange);
  };
}
