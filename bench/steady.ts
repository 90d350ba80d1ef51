/** Starts `rate` calls per second, whether or not earlier calls are done, and waits for all of them. */
export async function startEvenly(
  rate: number,
  seconds: number,
  start: (index: number) => Promise<unknown>,
): Promise<void> {
  const startedAt = performance.now();
  const running: Promise<unknown>[] = [];
  for (let started = 0; started < rate * seconds; ) {
    const due = ((performance.now() - startedAt) / 1000) * rate;
    for (; started < due; started += 1) running.push(start(started));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(running);
}

/** 1 kB of JSON with the current time, from which the receiver computes the latency. */
export function buildTimedData(): string {
  const sent = (performance.timeOrigin + performance.now()).toFixed(3);
  return `{"sent":${sent},"filler":"${'x'.repeat(950)}"}`;
}
