/**
 * `node bench/pairs.ts --before <checkout> --pairs 7`: compares the throughput of two checkouts of Posthorn. Each pair runs both,
 * one after the other on an empty database, and the order changes with each pair, because the speed of the machine changes
 * within minutes. `--after` is this checkout unless it is set. With the same checkout on both sides the spread is the noise.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  compareWithBareLoop,
  createDatabase,
  median,
  type Postgres,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPostgres,
  startPosthorn,
  startReceiver,
  waitUntilSettled,
} from './harness.ts';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    after: { type: 'string', default: '.' },
    pairs: { type: 'string', default: '7' },
    processes: { type: 'string', default: '2' },
  },
});
if (values.before === undefined) {
  console.error('--before is missing: name the folder of a checkout with its dependencies installed.');
  process.exit(2);
}

const EVENTS = 40_000;

/** Returns the events per second of a checkout, as a ratio to the bare loop before and after. */
async function measureCheckout(
  folder: string,
  postgres: Postgres,
  receiver: Receiver,
  database: string,
): Promise<number> {
  const own = await createDatabase(postgres, database);
  const program = resolve(folder, 'src/cli/main.ts');
  const posthorn = await startPosthorn(own, {}, ['--processes', values.processes], [], 60, program);
  try {
    const types = await registerEndpoints(posthorn, receiver, { count: 50 });
    const measureRate = async (): Promise<number> => {
      const load = await runLoad(posthorn, { events: EVENTS, types, connections: 128 });
      if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
      await waitUntilSettled(own, 60);
      return EVENTS / ((performance.timeOrigin + performance.now() - load.startedAt) / 1000);
    };
    // Warm-up: V8 needs about ten thousand events in each process to optimize the hot path.
    await measureRate();
    const { ratios } = await compareWithBareLoop(receiver, 1, measureRate);
    return ratios[0]!;
  } finally {
    await posthorn.stop();
    await own.stop();
    await postgres.query(`drop database ${database} with (force)`);
  }
}

const postgres = await startPostgres();
const receiver = await startReceiver();
const quotients: number[] = [];
try {
  for (let pair = 0; pair < Number(values.pairs); pair += 1) {
    const ratio = { before: 0, after: 0 };
    for (const side of pair % 2 === 0 ? (['before', 'after'] as const) : (['after', 'before'] as const))
      ratio[side] = await measureCheckout(values[side]!, postgres, receiver, `pair_${pair}_${side}`);
    quotients.push(ratio.after / ratio.before);
    console.log(
      `pair ${pair + 1}: before ${ratio.before.toFixed(3)}, after ${ratio.after.toFixed(3)} of the bare loop: ${quotients.at(-1)!.toFixed(3)}`,
    );
  }
} finally {
  receiver.stop();
  await postgres.stop();
}
const sorted = quotients.toSorted((a, b) => a - b);
console.log(
  `after / before: median ${median(quotients).toFixed(3)}, from ${sorted[0]!.toFixed(3)} to ${sorted.at(-1)!.toFixed(3)}`,
);
