/**
 * `npm run chaos -- --minutes 30 [--seed N]`: runs the chaos test for a longer time.
 * `--shop` runs the one with a shop that publishes in its own transactions. `--backbone kafka` accepts events in Kafka, with three
 * brokers or with `--brokers N`.
 */
import { parseArgs } from 'node:util';
import { runShopChaos } from '../test/chaos/four-ways/run.ts';
import { runChaos } from '../test/chaos/run.ts';
import { missingKafka } from '../test/support/kafka/broker.ts';

const { values } = parseArgs({
  options: {
    backbone: { type: 'string', default: 'postgres' },
    brokers: { type: 'string', default: '3' },
    shop: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string' },
    rate: { type: 'string', default: '40' },
    rest: { type: 'string' },
    careful: { type: 'string', default: 'never' },
  },
});
const isOnKafka = values.backbone === 'kafka';
const missing = isOnKafka ? missingKafka() : null;
if (missing !== null) {
  console.error(`--backbone kafka needs Kafka: ${missing}.`);
  process.exit(2);
}
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Math.floor(Math.random() * 1e6) : Number(values.seed);
const isLongRun = minutes >= 20;
console.log(`chaos: seed ${seed}, ${minutes} minutes`);

const commonOptions = {
  seed,
  minMs: minutes * 60_000,
  drainMs: 60_000,
  progress: (line: string) => console.log(line),
};
const runServerChaos = () =>
  runChaos({
    ...commonOptions,
    minFaults: isLongRun ? 100 : 0,
    minOfEachKind: isLongRun ? 5 : 0,
    minEvents: isLongRun ? 10_000 : 0,
    eventsPerSecond: Number(values.rate),
    restMs: Number(values.rest ?? 9000),
    careful: values.careful === 'default' ? 'default' : 'never',
    brokers: isOnKafka ? Number(values.brokers) : 0,
  });
const runRelayChaos = () =>
  runShopChaos({
    ...commonOptions,
    ordersPerSecond: Number(values.rate),
    restMs: Number(values.rest ?? 3000),
  });

const { story, ...numbers } = values.shop ? await runRelayChaos() : await runServerChaos();
console.log(JSON.stringify(numbers, null, 2));
console.log(story === '' ? 'No event was lost, and every limit held.' : story);
process.exitCode = story === '' ? 0 : 1;
