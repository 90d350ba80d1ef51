/**
 * What invented keys cost: the processor time and the reads of the database of a flood by itself; and publishing at a steady
 * rate, alone and beside the flood. All alternate on the same server.
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
  waitUntilSettled,
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

interface Cost extends Guesses {
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
    const publish = async (): Promise<number> =>
      percentile((await runLoad(posthorn, { rate: RATE, seconds, types })).latencies, 0.5);
    const measureFlood = async (): Promise<Cost> => {
      await waitUntilSettled(postgres, 30);
      const before = await readCpu();
      const stop = flood(posthorn);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      const guesses = await stop();
      const [posthornSeconds, postgresSeconds] = (await readCpu()).map((at, index) => at - before[index]!);
      return { ...guesses, posthornSeconds: posthornSeconds!, postgresSeconds: postgresSeconds! };
    };
    const floods: Cost[] = [];
    const pairs: { alone: number; beside: number; guesses: Guesses }[] = [];
    let reads = 0;
    try {
      await publish();
      reads = -(await countKeyReads(postgres));
      for (let run = 1; run <= runs; run += 1) {
        onProgress(`run ${run} of ${runs}`);
        floods.push(await measureFlood());
        const alone = await publish();
        const stop = flood(posthorn);
        const beside = await publish();
        pairs.push({ alone, beside, guesses: await stop() });
      }
      await new Promise((resolve) => setTimeout(resolve, STATISTICS_DELAY_MS));
      reads += await countKeyReads(postgres);
    } finally {
      await posthorn.stop();
    }
    type Pair = (typeof pairs)[number];
    const medianOf = (pick: (pair: Pair) => number): number => median(pairs.map(pick));
    const usPerKey = (pick: (cost: Cost) => number): number =>
      median(floods.map((cost) => (pick(cost) * 1e6) / cost.answered));
    const all: Guesses[] = [...floods, ...pairs.map(({ guesses }) => guesses)];
    const answered = all.reduce((sum, guesses) => sum + guesses.answered, 0);
    return [
      {
        name: 'invented keys answered',
        value: median(floods.map((cost) => cost.answered / cost.seconds)),
        unit: '/s',
      },
      {
        name: 'reads of the table of keys per 1,000 invented keys',
        value: (reads * 1000) / answered,
        unit: '',
        id: 'guessed_keys_reads',
        goal: { atMost: 20 },
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
      { name: 'p50 of publishing, alone', value: medianOf(({ alone }) => alone), unit: 'ms' },
      {
        name: 'p50 of publishing, beside the guesses',
        value: medianOf(({ beside }) => beside),
        unit: 'ms',
      },
      {
        name: 'median ratio within a pair',
        value: medianOf(({ alone, beside }) => beside / alone),
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
