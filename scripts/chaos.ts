/** `npm run chaos -- --minutes 30 [--seed N]`: the chaos test for as long as you like, until something is lost. */
import { parseArgs } from 'node:util';
import { runChaos } from '../test/chaos/run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string' },
    rate: { type: 'string', default: '40' },
    rest: { type: 'string', default: '9000' },
    careful: { type: 'string', default: 'never' },
  },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Math.floor(Math.random() * 1e6) : Number(values.seed);
const long = minutes >= 20;
console.log(`chaos: seed ${seed}, ${minutes} minutes`);
const { story, ...numbers } = await runChaos({
  seed,
  minMs: minutes * 60_000,
  minFaults: long ? 100 : 0,
  minOfEachKind: long ? 5 : 0,
  minEvents: long ? 10_000 : 0,
  eventsPerSecond: Number(values.rate),
  restMs: Number(values.rest),
  careful: values.careful === 'default' ? 'default' : 'never',
  drainMs: 60_000,
  progress: (line) => console.log(line),
});
console.log(JSON.stringify(numbers, null, 2));
console.log(story === '' ? 'Nothing was lost, and every limit held.' : story);
process.exitCode = story === '' ? 0 : 1;
