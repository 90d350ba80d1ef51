/**
 * `npm run capacity`: measures the costs of events, deliveries, retries and bytes, writes them to
 * src/cli/capacity/measured-costs.ts and docs/capacity.md, and compares predictions with two measured loads.
 * `--quick` takes about three minutes and writes nothing. Linux only, because it reads /proc.
 */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { replaceMarked } from '../../scripts/marked-text.ts';
import type { UnitCosts } from '../../src/cli/capacity/unit-costs.ts';
import { type Postgres, type Receiver, startPostgres, startReceiver } from '../harness.ts';
import { createEndpoints } from '../scenarios/endpoints.ts';
import { fitUnitCosts, type Samples } from './fit.ts';
import { type Load, measure, type Node, type Sample, startNode } from './measure.ts';
import { compareWithModel, drawCores, tables } from './tables.ts';
import { measureWaiting } from './waiting.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '40' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log('npm run capacity -- [--quick] [--seconds 40]');
  process.exit(0);
}
const isQuick = values.quick;
const showProgress = (text: string): void => void process.stderr.write(`\r\u001b[K${text}`);

/** Rates that two cores can sustain together with the receiver and the load generator. */
const rate = isQuick ? 200 : 600;
const seconds = isQuick ? 5 : Number(values.seconds);
const base = { rate, seconds, endpoints: 50, fanOut: 1, bytes: 300 };
const LOADS: Readonly<Record<keyof Samples, Load>> = {
  idle: { ...base, name: 'idle', rate: 1, fanOut: 0 },
  accept: { ...base, name: 'accept', fanOut: 0 },
  base: { ...base, name: 'base' },
  fanOut: { ...base, name: 'fan-out of 5', rate: rate / 4, fanOut: 5 },
  payload: { ...base, name: '8 kB of payload', rate: rate / 2, bytes: 8_000 },
  retry: { ...base, name: 'five attempts', rate: rate / 6, failing: 1, attempts: 5 },
  lowRate: { ...base, name: 'low rate', rate: rate / 5 },
  lowestRate: { ...base, name: 'lowest rate', rate: rate / 20 },
};
/** Shows how costs grow; the model uses none of these. */
const GROWTH: readonly Load[] = [
  { ...base, name: 'one endpoint', endpoints: 1 },
  { ...base, name: '1,000 endpoints', endpoints: 1_000 },
  { ...base, name: '500 tenants', tenants: isQuick ? 50 : 500 },
];
/** Loads that no cost was fitted to. */
const CHECKS: readonly Load[] = [
  { ...base, name: 'check, small', rate: rate / 4, fanOut: 2, bytes: 2_000, failing: 0.04, attempts: 3 },
  {
    ...base,
    name: 'check, large',
    rate: (rate * 3) / 4,
    fanOut: 2,
    bytes: 2_000,
    failing: 0.04,
    attempts: 3,
  },
];
const ENDPOINT_COUNTS = isQuick ? [1_000] : [10_000, 100_000];

async function inNewDatabase<T>(work: (postgres: Postgres, receiver: Receiver) => Promise<T>): Promise<T> {
  const [postgres, receiver] = [await startPostgres(), await startReceiver()];
  try {
    return await work(postgres, receiver);
  } finally {
    receiver.stop();
    await postgres.stop();
  }
}

async function withNode<T>(postgres: Postgres, work: (node: Node) => Promise<T>): Promise<T> {
  const node = await startNode(postgres);
  try {
    return await work(node);
  } finally {
    await node.posthorn.stop();
  }
}

const warmUpOf = (load: Load): Load => ({
  ...load,
  name: `${load.name} warm`,
  seconds: Math.min(10, seconds / 2),
});

const measureAlone = (load: Load): Promise<Sample> =>
  inNewDatabase((postgres, receiver) =>
    withNode(postgres, async (node) => {
      // Code that runs for the first time is slower.
      showProgress(`${load.name}: warm up`);
      await measure(postgres, receiver, node, warmUpOf(load));
      showProgress(`${load.name}: measure`);
      return measure(postgres, receiver, node, load);
    }),
  );

/** The same load beside many endpoints that get nothing. */
async function measureEndpoints(): Promise<Map<number, Sample>> {
  const samples = new Map<number, Sample>();
  for (const count of ENDPOINT_COUNTS)
    await inNewDatabase(async (postgres, receiver) => {
      await withNode(postgres, async () => {});
      showProgress(`${count} endpoints: create`);
      await createEndpoints(postgres, 0, count);
      await withNode(postgres, async (node) => {
        // The worker opens the lanes of all endpoints first.
        showProgress(`${count} endpoints: wait and warm up`);
        await sleep(5_000 + count / 25);
        const load = { ...base, name: `beside ${count}` };
        await measure(postgres, receiver, node, warmUpOf(load));
        showProgress(`${count} endpoints: measure`);
        samples.set(count, await measure(postgres, receiver, node, load));
      });
    });
  return samples;
}

const samples = {} as Record<keyof Samples, Sample>;
for (const [key, load] of Object.entries(LOADS)) samples[key as keyof Samples] = await measureAlone(load);
const growth: Sample[] = [];
for (const load of GROWTH) growth.push(await measureAlone(load));
const besideEndpoints = await measureEndpoints();
showProgress('waiting deliveries');
const waiting = await inNewDatabase((postgres) => measureWaiting(postgres, isQuick ? 20_000 : 200_000));
const checks: Sample[] = [];
for (const load of CHECKS) checks.push(await measureAlone(load));
showProgress('');

const [mostEndpoints, beside] = [...besideEndpoints].at(-1)!;
const memoryOf = ({ memory }: Sample): number => memory.api + memory.worker;
const costs: UnitCosts = fitUnitCosts(samples, {
  processMegabytes: Math.round(memoryOf(samples.base) / 2),
  endpointBytes: Math.max(
    0,
    Math.round(((memoryOf(beside) - memoryOf(samples.base)) / 2 / mostEndpoints) * 1_048_576),
  ),
  waitingBytes: Math.round(waiting.diskBytes),
  measuredOn: `${availableParallelism()} cores (${cpus()[0]!.model.trim()}), Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`,
});
const measured = { costs, samples, growth, besideEndpoints, waiting, checks };
const written = Object.entries(tables).map(([name, write]) => [name, write(measured)] as const);
for (const [name, text] of written) console.log(`\n${name}\n${text}`);

if (!isQuick) {
  const root = new URL('../../', import.meta.url);
  const module = new URL('src/cli/capacity/measured-costs.ts', root);
  await writeFile(
    module,
    `/** Written by \`npm run capacity\`. Do not edit. */\nimport type { UnitCosts } from './unit-costs.ts';\n\nexport const measuredCosts: UnitCosts = ${JSON.stringify(costs, null, 2)};\n`,
  );
  execFileSync('npx', ['biome', 'check', '--write', module.pathname], { cwd: root, stdio: 'ignore' });
  const document = new URL('docs/capacity.md', root);
  let text = await readFile(document, 'utf8');
  for (const [name, content] of written) text = replaceMarked(text, `capacity:${name}`, content);
  await writeFile(document, text);
  await writeFile(new URL('docs/images/capacity-cores.svg', root), drawCores(measured));
  console.log('\nWrote src/cli/capacity/measured-costs.ts and docs/capacity.md.');
}

const worst = Math.max(...checks.map((sample) => Math.abs(compareWithModel(costs, sample).total.error)));
console.log(`\nLargest error of the predictions: ${(worst * 100).toFixed(0)} %`);
if (worst > 0.25 && !isQuick) process.exitCode = 1;
