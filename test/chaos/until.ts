import { setTimeout as delay } from 'node:timers/promises';

export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`Timeout after ${timeoutMs} ms: ${what}.`);
    await delay(25);
  }
}
