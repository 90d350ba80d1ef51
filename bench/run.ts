/**
 * `npm run bench`: prints a table; `--json` prints JSON; `--check` fails if a figure is worse than its limit; `--record`
 * writes the figures to docs/performance.md if it has a table for the scenario.
 */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { startPostgres, startReceiver } from './harness.ts';
import { addRecordedLimits, isRecorded, record } from './recorded-figures.ts';
import { type Bench, type Figure, formatBound, formatValue, isWithin } from './scenario.ts';
import { backbone } from './scenarios/backbone.ts';
import { backlog } from './scenarios/backlog.ts';
import { batchesToOneEndpoint } from './scenarios/batches.ts';
import { bloat } from './scenarios/bloat.ts';
import { cost } from './scenarios/cost.ts';
import { endpoints } from './scenarios/endpoints.ts';
import { floor } from './scenarios/floor.ts';
import { growth } from './scenarios/growth.ts';
import { guessedKeys } from './scenarios/guessed-keys.ts';
import { handOver } from './scenarios/hand-over.ts';
import { isolation } from './scenarios/isolation.ts';
import { latency } from './scenarios/latency.ts';
import { lists } from './scenarios/lists.ts';
import { metrics } from './scenarios/metrics.ts';
import { noisyChanges } from './scenarios/noisy-changes.ts';
import { noisyFanOut } from './scenarios/noisy-fan-out.ts';
import { noisyLockedRow } from './scenarios/noisy-locked-row.ts';
import { noisyPatterns } from './scenarios/noisy-patterns.ts';
import { noisySlowEndpoints } from './scenarios/noisy-slow-endpoints.ts';
import { outbox } from './scenarios/outbox.ts';
import { payloadSearch } from './scenarios/payload-search.ts';
import { relay } from './scenarios/relay.ts';
import { retention } from './scenarios/retention.ts';
import { simpleDesign } from './scenarios/simple-design.ts';
import { storm } from './scenarios/storm.ts';
import { throughput } from './scenarios/throughput.ts';
import { validation } from './scenarios/validation.ts';

const ALL: Bench[] = [
  throughput,
  handOver,
  backbone,
  simpleDesign,
  cost,
  floor,
  latency,
  isolation,
  storm,
  batchesToOneEndpoint,
  noisyChanges,
  noisyFanOut,
  noisyLockedRow,
  noisyPatterns,
  noisySlowEndpoints,
  backlog,
  endpoints,
  growth,
  bloat,
  outbox,
  relay,
  retention,
  metrics,
  lists,
  payloadSearch,
  guessedKeys,
  validation,
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(
    `npm run bench -- [--only ${ALL.map((bench) => bench.name).join(',')}] [--runs 5] [--quick] [--json] [--check] [--record]`,
  );
  process.exit(0);
}
const selected =
  values.only === '' ? ALL : ALL.filter((bench) => values.only.split(',').includes(bench.name));
if (values.record && values.quick) {
  console.error('--record: not with --quick, which does not measure long enough.');
  process.exit(2);
}
if (selected.length === 0) {
  console.error(
    `--only: no scenario named "${values.only}". Allowed: ${ALL.map((bench) => bench.name).join(', ')}`,
  );
  process.exit(2);
}

const showProgress = (text: string): void => {
  if (!values.json) process.stderr.write(`\r\u001b[K${text}`);
};
const results: { bench: string; figures: Figure[] }[] = [];
for (const bench of selected) {
  // Each scenario gets its own database, so that the rows of one do not slow down the next.
  showProgress(`${bench.name} …`);
  const postgres = await startPostgres();
  const receiver = await startReceiver();
  try {
    const figures = await bench.run({
      postgres,
      receiver,
      runs: Number(values.runs),
      quick: values.quick,
      onProgress: (text) => showProgress(`${bench.name}: ${text}`),
    });
    results.push({ bench: bench.name, figures });
    showProgress('');
    if (!values.json) printFigures(bench.name, figures);
  } finally {
    receiver.stop();
    await postgres.stop();
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2));

const performancePage = new URL('../docs/performance.md', import.meta.url);
let page = await readFile(performancePage, 'utf8');
const failed = results.flatMap(({ bench, figures }) =>
  addRecordedLimits(page, bench, figures).filter((figure) => !isWithin(figure.value, figure.limit)),
);
if (values.check && failed.length > 0) {
  for (const figure of failed)
    console.error(`${figure.name}: ${formatValue(figure)}, must be ${formatBound(figure.limit!)}`);
  process.exitCode = 1;
}

if (values.record) {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const machine = `${availableParallelism()} cores (${cpus()[0]!.model.trim()}), Node ${process.version}`;
  const today = new Date().toISOString().slice(0, 10);
  const measuredOn = `Median of ${values.runs} runs of ${commit} on ${machine}, ${today}.`;
  for (const { bench, figures } of results.filter(({ bench }) => isRecorded(page, bench)))
    page = record(page, bench, figures, measuredOn);
  await writeFile(performancePage, page);
}

function printFigures(name: string, figures: readonly Figure[]): void {
  console.log(`\n${name}`);
  for (const figure of figures) {
    const verdict =
      figure.goal === undefined
        ? ''
        : `${isWithin(figure.value, figure.goal) ? '✓' : '✗'} goal ${formatBound(figure.goal)}`;
    console.log(`  ${figure.name.padEnd(58)} ${formatValue(figure).padStart(12)}   ${verdict}`.trimEnd());
  }
}
