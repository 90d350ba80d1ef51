/**
 * What invented keys cost: publishing at a steady rate, alone and beside 470 requests per second with invented keys. Both
 * alternate on the same server. The processor time of a key is the difference of the two.
 */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'undici';
import {
  median,
  type Postgres,
  type Posthorn,
  percentile,
  registerEndpoints,
  runLoad,
  startPosthorn,
} from '../harness.ts';
import { readPostmasterPid, readTreeSeconds } from '../process-figures.ts';
import type { Bench } from '../scenario.ts';

const RATE = 200;
const GUESSES_PER_SECOND = 470;
const TICK_MS = 10;
/** PostgreSQL counts the reads of an idle session after at most ten seconds. */
const STATISTICS_DELAY_MS = 11_000;

interface Guesses {
  readonly answered: number;
  readonly seconds: number;
}

/** In turns the form of this version, with a wrong checksum, and that of earlier versions, which have none. */
const inventKey = (n: number): string =>
  n % 2 === 0
    ? `phk_${randomBytes(39).toString('base64url').slice(0, 51)}`
    : `phk_${randomBytes(32).toString('base64url')}`;

/** Sends requests with invented keys until it is stopped. */
function flood({ port }: Posthorn): () => Promise<Guesses> {
  const dispatcher = new Agent({ connections: 32 });
  const startedAt = performance.now();
  let sent = 0;
  let answered = 0;
  const send = async (): Promise<void> => {
    const { body, statusCode } = await request(`http://127.0.0.1:${port}/v1/events`, {
      dispatcher,
      headers: { authorization: `Bearer ${inventKey(sent)}` },
    });
    await body.dump();
    if (statusCode === 401) answered += 1;
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * GUESSES_PER_SECOND;
    for (; sent < due; sent += 1) void send().catch(() => {});
  }, TICK_MS);
  return async () => {
    clearInterval(timer);
    const seconds = (performance.now() - startedAt) / 1000;
    await dispatcher.destroy();
    return { answered, seconds };
  };
}

interface Measured {
  readonly p50: number;
  readonly posthornSeconds: number;
  readonly postgresSeconds: number;
}

export const guessedKeys: Bench = {
  name: 'guessed-keys',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const seconds = quick ? 4 : 15;
    const posthorn = await startPosthorn(postgres);
    const postmaster = await readPostmasterPid(postgres);
    const types = await registerEndpoints(posthorn, receiver, { count: 10 });
    const readCpu = () => Promise.all([readTreeSeconds(posthorn.pid), readTreeSeconds(postmaster)]);
    const measure = async (): Promise<Measured> => {
      const before = await readCpu();
      const { latencies } = await runLoad(posthorn, { rate: RATE, seconds, types });
      const after = await readCpu();
      return {
        p50: percentile(latencies, 0.5),
        posthornSeconds: after[0] - before[0],
        postgresSeconds: after[1] - before[1],
      };
    };
    const pairs: { alone: Measured; beside: Measured; guesses: Guesses }[] = [];
    let reads = 0;
    try {
      await measure();
      reads = -(await countKeyReads(postgres));
      for (let run = 1; run <= runs; run += 1) {
        onProgress(`pair ${run} of ${runs}`);
        const alone = await measure();
        const stop = flood(posthorn);
        const beside = await measure();
        pairs.push({ alone, beside, guesses: await stop() });
      }
      await new Promise((resolve) => setTimeout(resolve, STATISTICS_DELAY_MS));
      reads += await countKeyReads(postgres);
    } finally {
      await posthorn.stop();
    }
    type Pair = (typeof pairs)[number];
    const medianOf = (pick: (pair: Pair) => number): number => median(pairs.map(pick));
    const usPerKey = (pick: (measured: Measured) => number): number =>
      medianOf(({ alone, beside, guesses }) => ((pick(beside) - pick(alone)) * 1e6) / guesses.answered);
    const guesses = pairs.reduce((sum, pair) => sum + pair.guesses.answered, 0);
    return [
      {
        name: 'invented keys answered',
        value: medianOf(({ guesses: { answered, seconds } }) => answered / seconds),
        unit: '/s',
      },
      {
        name: 'reads of the table of keys per 1,000 invented keys',
        value: (reads * 1000) / guesses,
        unit: '',
        id: 'guessed_keys_reads',
        goal: { atMost: 10 },
        limit: { atMost: 20 },
      },
      {
        name: 'CPU of Posthorn per invented key',
        value: usPerKey(({ posthornSeconds }) => posthornSeconds),
        unit: 'µs',
      },
      {
        name: 'CPU of PostgreSQL per invented key',
        value: usPerKey(({ postgresSeconds }) => postgresSeconds),
        unit: 'µs',
      },
      { name: 'p50 of publishing, alone', value: medianOf(({ alone }) => alone.p50), unit: 'ms' },
      {
        name: 'p50 of publishing, beside the guesses',
        value: medianOf(({ beside }) => beside.p50),
        unit: 'ms',
      },
      {
        name: 'median ratio within a pair',
        value: medianOf(({ alone, beside }) => beside.p50 / alone.p50),
        unit: '×',
        id: 'guessed_keys_ratio',
        goal: { atMost: 1.5 },
      },
    ];
  },
};

async function countKeyReads(postgres: Postgres): Promise<number> {
  const [row] = await postgres.query<{ reads: string }>(
    `select pg_stat_clear_snapshot(), idx_scan + seq_scan as reads from pg_stat_user_tables where relname = 'api_keys'`,
  );
  return Number(row!.reads);
}
