/**
 * Reading from the API: one cache entry per address, shared by whoever shows it, refreshed while somebody looks.
 * What was seen before is shown at once and replaced when the answer is there, so going back does not flicker.
 */
import { useCallback, useEffect, useSyncExternalStore } from 'react';
import { ApiError, call, send } from './client.ts';

export interface Query<T> {
  readonly data: T | undefined;
  readonly error: ApiError | null;
  /** Nothing to show yet. */
  readonly loading: boolean;
  refresh(): Promise<void>;
}

interface Snapshot {
  readonly data: unknown;
  readonly error: ApiError | null;
}

interface Entry {
  snapshot: Snapshot;
  running: Promise<void> | null;
  readonly listeners: Set<() => void>;
}

const NOTHING: Snapshot = { data: undefined, error: null };
const MAX_ENTRIES = 300;
const AFTER_ERROR_MS = 5_000;
const entries = new Map<string, Entry>();

function entryOf(path: string): Entry {
  let entry = entries.get(path);
  if (entry === undefined) {
    entry = { snapshot: NOTHING, running: null, listeners: new Set() };
    if (entries.size >= MAX_ENTRIES)
      for (const [old, { listeners }] of entries) if (listeners.size === 0) entries.delete(old);
    entries.set(path, entry);
  }
  return entry;
}

function load(path: string): Promise<void> {
  const entry = entryOf(path);
  entry.running ??= read(path)
    .then(
      (data): Snapshot => ({ data, error: null }),
      (error: unknown): Snapshot => ({ data: entry.snapshot.data, error: asApiError(error) }),
    )
    .then((snapshot) => {
      entry.running = null;
      entry.snapshot = snapshot;
      for (const listener of entry.listeners) listener();
    });
  return entry.running;
}

const TEXT = 'text:';
/** The answer as it came: numbers larger than JavaScript's stay what they are. */
export const asText = (path: string): string => TEXT + path;

async function read(path: string): Promise<unknown> {
  if (!path.startsWith(TEXT)) return call('GET', path);
  return (await send('GET', path.slice(TEXT.length))).text();
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, 'unknown', error instanceof Error ? error.message : String(error));
}

/** Something was changed: whatever is on the page and begins with this is read again. */
export function invalidate(...prefixes: string[]): void {
  for (const [path, entry] of entries) {
    if (!prefixes.some((prefix) => path.replace(TEXT, '').startsWith(prefix))) continue;
    if (entry.listeners.size === 0) entries.delete(path);
    else void load(path);
  }
}

export function clearQueries(): void {
  entries.clear();
}

export function useQuery<T>(path: string | null, { pollMs = 0 } = {}): Query<T> {
  const subscribe = useCallback(
    (listener: () => void) => {
      if (path === null) return () => {};
      const { listeners } = entryOf(path);
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [path],
  );
  const snapshot = useSyncExternalStore(subscribe, () => (path === null ? NOTHING : entryOf(path).snapshot));

  useEffect(() => {
    if (path === null) return;
    return whileVisible(async () => {
      await load(path);
      if (pollMs === 0) return null;
      return entryOf(path).snapshot.error === null ? pollMs : Math.max(pollMs, AFTER_ERROR_MS);
    });
  }, [path, pollMs]);

  const refresh = useCallback(async () => {
    if (path !== null) await load(path);
  }, [path]);
  return {
    data: snapshot.data as T | undefined,
    error: snapshot.error,
    loading: path !== null && snapshot.data === undefined && snapshot.error === null,
    refresh,
  };
}

/** Runs a task again and again, at the pace that it asks for, as long as the page is looked at. */
export function whileVisible(task: () => Promise<number | null>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  let waiting = false;
  const run = async (): Promise<void> => {
    waiting = false;
    const pauseMs = await task();
    if (stopped || pauseMs === null) return;
    if (document.hidden) waiting = true;
    else timer = setTimeout(() => void run(), pauseMs);
  };
  const seen = (): void => {
    if (waiting && !document.hidden) void run();
  };
  document.addEventListener('visibilitychange', seen);
  void run();
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', seen);
  };
}
