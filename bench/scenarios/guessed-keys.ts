/**
 * The p50 of publishing at a steady rate: alone, and beside 470 requests per second with invented keys. Both alternate on
 * the same server; the result is the median ratio within a pair.
 */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'undici';
import { median, type Posthorn, percentile, registerEndpoints, runLoad, startPosthorn } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const RATE = 200;
const GUESSES_PER_SECOND = 470;
const TICK_MS = 10;

/** Sends requests with invented keys until it is stopped. Returns how many were answered per second. */
function flood({ port }: Posthorn): () => Promise<number> {
  const dispatcher = new Agent({ connections: 32 });
  const startedAt = performance.now();
  let sent = 0;
  let answered = 0;
  const send = async (): Promise<void> => {
    const authorization = `Bearer phk_${randomBytes(32).toString('base64url')}`;
    const { body } = await request(`http://127.0.0.1:${port}/v1/events`, {
      dispatcher,
      headers: { authorization },
    });
    await body.dump();
    answered += 1;
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * GUESSES_PER_SECOND;
    for (; sent < due; sent += 1) void send().catch(() => {});
  }, TICK_MS);
  return async () => {
    clearInterval(timer);
    const seconds = (performance.now() - startedAt) / 1000;
    await dispatcher.destroy();
    return answered / seconds;
  };
}

export const guessedKeys: Bench = {
  name: 'guessed-keys',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const seconds = quick ? 4 : 15;
    const posthorn = await startPosthorn(postgres);
    const types = await registerEndpoints(posthorn, receiver, { count: 10 });
    const measure = async (): Promise<number> =>
      percentile((await runLoad(posthorn, { rate: RATE, seconds, types })).latencies, 0.5);
    const pairs: { alone: number; beside: number; guesses: number }[] = [];
    try {
      await measure();
      for (let run = 1; run <= runs; run += 1) {
        onProgress(`pair ${run} of ${runs}`);
        const alone = await measure();
        const stop = flood(posthorn);
        const beside = await measure();
        pairs.push({ alone, beside, guesses: await stop() });
      }
    } finally {
      await posthorn.stop();
    }
    return [
      { name: 'p50 of publishing, alone', value: median(pairs.map(({ alone }) => alone)), unit: 'ms' },
      {
        name: 'p50 of publishing, beside the guesses',
        value: median(pairs.map(({ beside }) => beside)),
        unit: 'ms',
      },
      { name: 'invented keys answered', value: median(pairs.map(({ guesses }) => guesses)), unit: '/s' },
      {
        name: 'median ratio within a pair',
        value: median(pairs.map(({ alone, beside }) => beside / alone)),
        unit: '×',
        id: 'guessed_keys_ratio',
        goal: { atMost: 1.5 },
      },
    ];
  },
};
