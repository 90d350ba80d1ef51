import { useRef } from 'react';

/** The last value there was, while the next one is on its way; of the same thing only. */
export function useKept<T>(value: T | undefined, thing: string): T | undefined {
  const kept = useRef<{ thing: string; value: T } | null>(null);
  if (value !== undefined) kept.current = { thing, value };
  return value ?? (kept.current?.thing === thing ? kept.current.value : undefined);
}
