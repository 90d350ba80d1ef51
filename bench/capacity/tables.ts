/** The tables of docs/capacity.md, by the name of their place in the document. */
import { xyChart } from '../../lab/svg.ts';
import { coresOf, DEFAULT_DEMAND, type Demand, predict } from '../../src/cli/capacity/model.ts';
import { describePrediction } from '../../src/cli/capacity/report.ts';
import {
  type Costs,
  type ProcessKind,
  processKinds,
  type UnitCosts,
} from '../../src/cli/capacity/unit-costs.ts';
import { ONE_NODE, ratesOfSample, type Samples } from './fit.ts';
import type { Sample } from './measure.ts';
import type { Waiting } from './waiting.ts';

export interface Measured {
  readonly costs: UnitCosts;
  readonly samples: Samples;
  readonly growth: readonly Sample[];
  /** By the number of endpoints that get nothing. */
  readonly besideEndpoints: ReadonlyMap<number, Sample>;
  readonly waiting: Waiting;
  readonly checks: readonly Sample[];
}

type Cell = string | number;

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const whole = (value: number): string => Math.round(value).toLocaleString('en');
const names: Readonly<Record<ProcessKind, string>> = {
  api: 'API process',
  worker: 'worker process',
  postgres: 'PostgreSQL',
};

const costCells = ({ event, delivery, retry, kilobyte, transaction }: Costs): Cell[] =>
  [event, delivery, retry, kilobyte, transaction].map(whole);

function costTable({ costs }: Measured): string {
  return `${table(
    ['', 'event', 'delivery', 'retry', 'kB of payload', 'transaction', 'idle'],
    [
      ...processKinds.map((kind) => [
        `CPU of the ${names[kind]}, µs`,
        ...costCells(costs.cpu[kind]),
        `${(costs.idleCores[kind] * 100).toFixed(1)} % of a core`,
      ]),
      ['write-ahead log, bytes', ...costCells(costs.walBytes), ''],
      ['disk, bytes', ...costCells(costs.diskBytes), ''],
    ],
  )}\n\nA transaction takes ${costs.transactionMs} ms. Measured on ${costs.measuredOn}.`;
}

function sampleRow(sample: Sample): Cell[] {
  const perEvent = (value: number): string => whole(value / sample.events);
  return [
    sample.load.name,
    whole(sample.events / sample.load.seconds),
    ...processKinds.map((kind) => perEvent(sample.cpu[kind] * 1e6)),
    perEvent(sample.walBytes),
    perEvent(sample.diskBytes),
    sample.connections,
    `${whole(sample.memory.api)} + ${whole(sample.memory.worker)}`,
  ];
}

function sampleTable({ samples, growth, besideEndpoints }: Measured): string {
  const { idle: _, ...busy } = samples;
  const beside = [...besideEndpoints].map(([count, sample]) => [
    `beside ${count.toLocaleString('en')} idle endpoints`,
    ...sampleRow(sample).slice(1),
  ]);
  return table(
    [
      'load',
      'events/s',
      'API µs',
      'worker µs',
      'PostgreSQL µs',
      'WAL bytes',
      'disk bytes',
      'connections',
      'memory, MB',
    ],
    [...Object.values(busy).map(sampleRow), ...growth.map(sampleRow), ...beside],
  );
}

function memoryTable({ costs, waiting }: Measured): string {
  return table(
    ['', ''],
    [
      ['a process without endpoints', `${costs.processMegabytes} MB`],
      ['an endpoint, in each process', `${whole(costs.endpointBytes)} bytes`],
      [
        `the worker before and after ${waiting.count.toLocaleString('en')} deliveries wait`,
        `${whole(waiting.before)} MB, ${whole(waiting.after)} MB`,
      ],
      ['disk of a delivery that waits, without its event', `${whole(waiting.diskBytes)} bytes`],
      ['connections of a process', costs.connections],
    ],
  );
}

interface Comparison {
  readonly predicted: number;
  readonly measured: number;
  /** Predicted over measured, minus 1. */
  readonly error: number;
}

/** Compares busy cores. */
export function compareWithModel(
  costs: UnitCosts,
  sample: Sample,
): Readonly<Record<ProcessKind | 'total', Comparison>> {
  const { seconds } = sample.load;
  const idleProcesses = { api: 1, worker: 1, postgres: 2 };
  const compare = (predicted: number, measured: number): Comparison => ({
    predicted,
    measured: measured / seconds,
    error: predicted / (measured / seconds) - 1,
  });
  const predictedOf = (kind: ProcessKind): number =>
    coresOf(ratesOfSample(sample), costs, kind, ONE_NODE) +
    (idleProcesses[kind] * costs.idleCores[kind] * sample.seconds) / seconds;
  const sum = (of: (kind: ProcessKind) => number): number =>
    processKinds.reduce((total, kind) => total + of(kind), 0);
  return {
    ...(Object.fromEntries(
      processKinds.map((kind) => [kind, compare(predictedOf(kind), sample.cpu[kind])]),
    ) as Record<ProcessKind, Comparison>),
    total: compare(
      sum(predictedOf),
      sum((kind) => sample.cpu[kind]),
    ),
  };
}

function checkTable({ costs, checks }: Measured): string {
  return table(
    ['load', 'part', 'predicted cores', 'measured cores', 'error'],
    checks.flatMap((sample) => {
      const compared = compareWithModel(costs, sample);
      return [...processKinds, 'total' as const].map((kind) => [
        `${sample.load.name} (${whole(sample.events / sample.load.seconds)} events/s)`,
        kind === 'total' ? '**total**' : names[kind],
        compared[kind].predicted.toFixed(2),
        compared[kind].measured.toFixed(2),
        `${compared[kind].error >= 0 ? '+' : ''}${(compared[kind].error * 100).toFixed(0)} %`,
      ]);
    }),
  );
}

/** What docs/capacity.md asks in its first command. */
const BILLION: Demand = {
  ...DEFAULT_DEMAND,
  eventsPerDay: 1e9,
  peakFactor: 8.3,
  fanOut: 1.2,
  payloadBytes: 1_000,
  receiverMs: 200,
  failures: 0.02,
};

function billion({ costs }: Measured): string {
  return `\`\`\`text\n${describePrediction(BILLION, predict(BILLION, costs), costs)}\n\`\`\``;
}

/** Busy cores by events per second, for the demand of `BILLION`. */
export function drawCores({ costs }: Measured): string {
  const rates = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000];
  const series = processKinds.map((kind) => ({
    name: names[kind],
    points: rates.map((rate): [number, number] => [
      rate,
      predict({ ...BILLION, eventsPerDay: rate * 86_400, peakFactor: 1 }, costs).cores[kind],
    ]),
  }));
  const ticks = (values: readonly number[]) => values.map((at) => ({ at, label: at.toLocaleString('en') }));
  return xyChart(
    'Busy cores (1.2 deliveries per event, 1 kB, 2 % failures)',
    {
      x: { label: 'events per second', ticks: ticks(rates), isLogarithmic: true },
      y: { label: 'cores', ticks: ticks([0.01, 0.1, 1, 10, 100]), isLogarithmic: true },
    },
    series,
    'lines',
  );
}

export const tables: Readonly<Record<string, (measured: Measured) => string>> = {
  billion,
  costs: costTable,
  loads: sampleTable,
  memory: memoryTable,
  check: checkTable,
};
