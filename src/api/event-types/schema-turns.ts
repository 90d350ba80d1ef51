/**
 * Turns of requests that read and compare schemas. That is synchronous and takes up to some hundred milliseconds, so a process
 * does it for one request at a time, and then pauses for three times that long.
 */
import type { Clock } from '../../domain/clock.ts';
import { Gate } from '../../domain/gate.ts';
import { Problem } from '../../domain/problem.ts';

const gate = new Gate({ maxRunning: 1, maxWaiting: 20, perGroup: { maxRunning: 1, maxWaiting: 4 } });
const PAUSE_PER_WORK = 3;
const MAX_PAUSE_MS = 2_000;

/** What the routes document about `rate_limited`. */
export const TOO_MANY_COMPARISONS =
  'The tenant already has four requests that wait for a comparison of schemas, or the key makes too many requests.';

/** Runs `work` when it is its turn. The tenant is that of the key; null: all tenants. Throws `rate_limited`. */
export async function takeSchemaTurn<T extends object>(
  clock: Clock,
  tenant: string | null,
  work: () => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const turn = async (): Promise<true> => {
    const startedAt = clock.monotonic();
    await work().then(resolve, reject);
    const pauseMs = Math.min(PAUSE_PER_WORK * (clock.monotonic() - startedAt), MAX_PAUSE_MS);
    await new Promise<void>((done) => clock.after(pauseMs, done));
    return true;
  };
  void gate.run(turn, { group: tenant ?? '' }).then((isDone) => {
    if (isDone !== null) return;
    const text = 'Too many requests that compare schemas wait already. Try again shortly.';
    reject(new Problem('rate_limited', text, { retryAfterSeconds: 1 }));
  });
  return promise;
}
