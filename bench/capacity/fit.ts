/** Turns measured samples into the costs of `src/cli/capacity`. */
import { type ProcessCounts, type Rates, transactionsOf } from '../../src/cli/capacity/model.ts';
import {
  type Costs,
  type ProcessKind,
  processKinds,
  type UnitCosts,
} from '../../src/cli/capacity/unit-costs.ts';
import type { Sample } from './measure.ts';

/** The samples that tell one cause from another. Each differs from `base` in one thing. */
export interface Samples {
  /** Nothing happens. */
  readonly idle: Sample;
  /** Events without a delivery. */
  readonly accept: Sample;
  /** One delivery per event. */
  readonly base: Sample;
  /** Several deliveries per event. */
  readonly fanOut: Sample;
  /** A larger payload. */
  readonly payload: Sample;
  /** Every delivery is attempted several times. */
  readonly retry: Sample;
  /** Fewer events per second, so fewer share a transaction. */
  readonly lowRate: Sample;
  readonly lowestRate: Sample;
}

/** Every load is measured on a node with one process of each kind. */
export const ONE_NODE: ProcessCounts = { api: 1, worker: 1 };

export function ratesOfSample({ load, events, deliveries, retries }: Sample): Rates {
  return {
    events: events / load.seconds,
    deliveries: deliveries / load.seconds,
    retries: retries / load.seconds,
    kilobytes: (events * load.bytes) / 1_000 / load.seconds,
  };
}

/** What a sample measured per second of its load, minus what an idle node uses in the same time. */
function busyPerSecond(sample: Sample, idle: Sample, measure: (sample: Sample) => number): number {
  const idlePerSecond = measure(idle) / idle.seconds;
  return Math.max(0, measure(sample) - idlePerSecond * sample.seconds) / sample.load.seconds;
}

/** Returns the duration of a transaction at which the model predicts the measured numbers of transactions best. */
export function fitTransactionMs({ idle, retry: _, ...busy }: Samples): number {
  const errorOf = (transactionMs: number): number =>
    Object.values(busy).reduce((sum, sample) => {
      const measured = busyPerSecond(sample, idle, ({ transactions }) => transactions);
      const predicted = transactionsOf(ratesOfSample(sample), ONE_NODE, transactionMs).postgres;
      return sum + Math.log(predicted / measured) ** 2;
    }, 0);
  const candidates = Array.from({ length: 400 }, (_, step) => 0.01 * 1.025 ** step);
  return candidates.reduce((best, next) => (errorOf(next) < errorOf(best) ? next : best));
}

/** The costs that explain the samples best. `kind`: the process whose transactions count. */
export function fitCosts(
  { idle, ...busy }: Samples,
  kind: ProcessKind,
  transactionMs: number,
  measure: (sample: Sample) => number,
): Costs {
  const rows = Object.values(busy).map((sample) => {
    const { events, deliveries, retries, kilobytes } = ratesOfSample(sample);
    const transactions = transactionsOf(ratesOfSample(sample), ONE_NODE, transactionMs)[kind];
    return {
      factors: [events, deliveries, retries, kilobytes, transactions],
      result: busyPerSecond(sample, idle, measure),
      events,
    };
  });
  // Each sample counts by its relative error. A load that hardly concerns this process must not outweigh the others.
  const largest = Math.max(...rows.map(({ result, events }) => result / events));
  const scaled = rows.map(({ factors, result, events }) => {
    const scale = Math.max(result, 0.1 * largest * events);
    return { factors: factors.map((factor) => factor / scale), result: result / scale };
  });
  const [event, delivery, retry, kilobyte, transaction] = solveLeastSquares(scaled).map(round);
  return {
    event: event!,
    delivery: delivery!,
    retry: retry!,
    kilobyte: kilobyte!,
    transaction: transaction!,
  };
}

interface Equation {
  readonly factors: readonly number[];
  readonly result: number;
}

/** Non-negative least squares by coordinate descent: there are five unknowns, so it need not be fast. */
function solveLeastSquares(equations: readonly Equation[]): number[] {
  const solution = equations[0]!.factors.map(() => 0);
  for (let sweep = 0; sweep < 50_000; sweep += 1)
    for (const column of solution.keys()) {
      let [product, square] = [0, 0];
      for (const { factors, result } of equations) {
        const others = factors.reduce(
          (sum, factor, index) => (index === column ? sum : sum + factor * solution[index]!),
          0,
        );
        product += factors[column]! * (result - others);
        square += factors[column]! ** 2;
      }
      solution[column] = square === 0 ? 0 : Math.max(0, product / square);
    }
  return solution;
}

const round = (value: number): number => Number(value.toPrecision(3));

export function fitUnitCosts(
  samples: Samples,
  others: Pick<UnitCosts, 'processMegabytes' | 'endpointBytes' | 'waitingBytes' | 'measuredOn'>,
): UnitCosts {
  const transactionMs = round(fitTransactionMs(samples));
  const explain = (kind: ProcessKind, measure: (sample: Sample) => number): Costs =>
    fitCosts(samples, kind, transactionMs, measure);
  const cpu = Object.fromEntries(
    processKinds.map((kind) => [kind, explain(kind, ({ cpu }) => cpu[kind] * 1e6)]),
  ) as Record<ProcessKind, Costs>;
  const idle = (kind: ProcessKind): number => samples.idle.cpu[kind] / samples.idle.seconds;
  return {
    cpu,
    idleCores: {
      api: round(idle('api')),
      worker: round(idle('worker')),
      // PostgreSQL answers the heartbeats of two processes.
      postgres: round(idle('postgres') / 2),
    },
    transactionMs,
    walBytes: explain('postgres', ({ walBytes }) => walBytes),
    diskBytes: explain('postgres', ({ diskBytes }) => diskBytes),
    connections: Math.ceil(samples.base.connections / 2),
    ...others,
  };
}
