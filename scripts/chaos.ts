/**
 * `npm run chaos -- --minutes 30 [--seed N]`: the chaos test for as long as you like, until something is lost.
 * With `--shop`: the one of the shop that publishes in its own transactions.
 */
import { parseArgs } from 'node:util';
import { runShopChaos } from '../test/chaos/four-ways/run.ts';
import { runChaos } from '../test/chaos/run.ts';

const { values } = parseArgs({
  options: {
    shop: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string' },
    rate: { type: 'string', default: '40' },
    rest: { type: 'string' },
    careful: { type: 'string', default: 'never' },
  },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Math.floor(Math.random() * 1e6) : Number(values.seed);
const long = minutes >= 20;
console.log(`chaos: seed ${seed}, ${minutes} minutes`);

const shared = {
  seed,
  minMs: minutes * 60_000,
  drainMs: 60_000,
  progress: (line: string) => console.log(line),
};
const everything = () =>
  runChaos({
    ...shared,
    minFaults: long ? 100 : 0,
    minOfEachKind: long ? 5 : 0,
    minEvents: long ? 10_000 : 0,
    eventsPerSecond: Number(values.rate),
    restMs: Number(values.rest ?? 9000),
    careful: values.careful === 'default' ? 'default' : 'never',
  });
const shop = () =>
  runShopChaos({ ...shared, ordersPerSecond: Number(values.rate), restMs: Number(values.rest ?? 3000) });

const { story, ...numbers } = values.shop ? await shop() : await everything();
console.log(JSON.stringify(numbers, null, 2));
console.log(story === '' ? 'Nothing was lost, and every limit held.' : story);
process.exitCode = story === '' ? 0 : 1;
