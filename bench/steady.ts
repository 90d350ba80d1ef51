/** For what is measured at a steady pace. */

/** Begins `rate` a second, whether or not those before are done, and waits for all of them. */
export async function beginEvenly(
  rate: number,
  seconds: number,
  begin: (index: number) => Promise<unknown>,
): Promise<void> {
  const startedAt = performance.now();
  const running: Promise<unknown>[] = [];
  for (let started = 0; started < rate * seconds; ) {
    const due = ((performance.now() - startedAt) / 1000) * rate;
    for (; started < due; started += 1) running.push(begin(started));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(running);
}

/** 1 kB of data that tells the receiver when it was sent. */
export function dataSentNow(): string {
  const sent = (performance.timeOrigin + performance.now()).toFixed(3);
  return `{"sent":${sent},"filler":"${'x'.repeat(950)}"}`;
}
