import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;

/**
 * Waits for something that only shows by asking: the answer of the API, the output of a process. `probe` gives the
 * awaited value, or undefined, null or false while it is not there yet. What it saw last is in the error.
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  { timeoutMs = 30_000, saw }: { timeoutMs?: number; saw?: () => unknown } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== null && found !== false) return found;
    if (performance.now() > deadline) {
      const last = saw === undefined ? '' : `; last seen: ${JSON.stringify(saw(), null, 2)}`;
      throw new Error(`Waited ${timeoutMs} ms in vain: ${what}${last}`);
    }
    await sleep(POLL_MS);
  }
}
