import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;

/**
 * Polls until `probe` returns a value other than undefined, null or false, and returns that. For state without
 * notification, such as an answer of the API or the output of a process. The error after the timeout contains what
 * `saw` returns.
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
      throw new Error(`Timeout after ${timeoutMs} ms: ${what}${last}`);
    }
    await sleep(POLL_MS);
  }
}
