/** `npm run bench`: prints a table; `--json` prints JSON; `--check` fails if a figure is worse than its limit. */
import { parseArgs } from 'node:util';
import { startPostgres, startReceiver } from './harness.ts';
import { type Bench, type Bound, type Figure, isWithin } from './scenario.ts';
import { backlog } from './scenarios/backlog.ts';
import { batchesToOneEndpoint } from './scenarios/batches.ts';
import { bloat } from './scenarios/bloat.ts';
import { cost } from './scenarios/cost.ts';
import { endpoints } from './scenarios/endpoints.ts';
import { growth } from './scenarios/growth.ts';
import { guessedKeys } from './scenarios/guessed-keys.ts';
import { isolation } from './scenarios/isolation.ts';
import { latency } from './scenarios/latency.ts';
import { lists } from './scenarios/lists.ts';
import { metrics } from './scenarios/metrics.ts';
import { noisyFanOut } from './scenarios/noisy-fan-out.ts';
import { noisyLockedRow } from './scenarios/noisy-locked-row.ts';
import { noisyPatterns } from './scenarios/noisy-patterns.ts';
import { noisySlowEndpoints } from './scenarios/noisy-slow-endpoints.ts';
import { outbox } from './scenarios/outbox.ts';
import { relay } from './scenarios/relay.ts';
import { retention } from './scenarios/retention.ts';
import { simpleDesign } from './scenarios/simple-design.ts';
import { storm } from './scenarios/storm.ts';
import { throughput } from './scenarios/throughput.ts';
import { validation } from './scenarios/validation.ts';

const ALL: Bench[] = [
  throughput,
  simpleDesign,
  cost,
  latency,
  isolation,
  storm,
  batchesToOneEndpoint,
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
  guessedKeys,
  validation,
];

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    runs: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(
    `npm run bench -- [--only ${ALL.map((bench) => bench.name).join(',')}] [--runs 5] [--quick] [--json] [--check]`,
  );
  process.exit(0);
}
const selected =
  values.only === '' ? ALL : ALL.filter((bench) => values.only.split(',').includes(bench.name));
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

const failed = results.flatMap(({ figures }) =>
  figures.filter((figure) => !isWithin(figure.value, figure.limit)),
);
if (values.check && failed.length > 0) {
  for (const figure of failed)
    console.error(`${figure.name}: ${formatValue(figure)}, must be ${formatBound(figure.limit!)}`);
  process.exitCode = 1;
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

function formatValue({ value, unit }: Figure): string {
  const digits = unit === '×' ? 2 : value < 100 ? 1 : 0;
  return `${value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

function formatBound(limit: Bound): string {
  return 'atLeast' in limit ? `≥ ${limit.atLeast}` : `≤ ${limit.atMost}`;
}
