import { useRef } from 'react';

/** Returns the value, or the last one of the same subject while the next one loads. */
export function useLastValue<T>(value: T | undefined, subject: string): T | undefined {
  const last = useRef<{ subject: string; value: T } | null>(null);
  if (value !== undefined) last.current = { subject, value };
  return value ?? (last.current?.subject === subject ? last.current.value : undefined);
}
