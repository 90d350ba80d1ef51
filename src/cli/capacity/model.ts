/**
 * Predicts what a load needs. Every part of the prediction is linear in events, deliveries, retries, kilobytes and
 * transactions, with the costs that `npm run capacity` measured. docs/capacity.md explains it and compares predictions with
 * measured runs.
 */
import { type Costs, type ProcessKind, processKinds, type UnitCosts } from './unit-costs.ts';

export interface Demand {
  readonly eventsPerDay: number;
  /** The busiest second of the day over the mean. */
  readonly peakFactor: number;
  /** Deliveries per event. */
  readonly fanOut: number;
  readonly payloadBytes: number;
  /** The median time until a receiver answers. */
  readonly receiverMs: number;
  /** The share of attempts that fail. */
  readonly failures: number;
  readonly endpoints: number;
  readonly keepDays: number;
  readonly coresPerNode: number;
}

export const DEFAULT_DEMAND: Omit<Demand, 'eventsPerDay'> = {
  peakFactor: 3,
  fanOut: 1,
  payloadBytes: 1_000,
  receiverMs: 200,
  failures: 0.02,
  endpoints: 1_000,
  keepDays: 90,
  coresPerNode: 8,
};

/** Per second. */
export interface Rates {
  readonly events: number;
  readonly deliveries: number;
  readonly retries: number;
  readonly kilobytes: number;
}

/** How many processes share the load. */
export type ProcessCounts = Readonly<Record<Exclude<ProcessKind, 'postgres'>, number>>;

export interface Limit {
  readonly name: string;
  /** What the demand needs of it, over what one deployment can have. More than 1: one deployment is not enough. */
  readonly use: number;
  readonly advice: string;
}

export interface Prediction {
  readonly mean: Rates;
  readonly peak: Rates;
  /** Busy cores at the peak. */
  readonly cores: Readonly<Record<ProcessKind, number>>;
  readonly processes: ProcessCounts;
  readonly nodes: number;
  /** Cores to give to PostgreSQL. */
  readonly postgresCores: number;
  readonly memoryPerNodeMb: number;
  readonly sockets: number;
  readonly connections: number;
  readonly walBytesPerSecond: number;
  readonly walBytesPerDay: number;
  readonly diskBytesPerDay: number;
  readonly diskBytes: number;
  /** The one that is reached first comes first. */
  readonly limits: readonly Limit[];
  /** How many deployments share the tenants: 1 if one PostgreSQL is enough. */
  readonly deployments: number;
}

const SECONDS_PER_DAY = 86_400;
/** Cores are planned to be busy for this share at the peak: the rest absorbs bursts within a second. */
const UTILIZATION = 0.65;
/** The time of a request whose receiver does not answer: the default deadline. */
const TIMEOUT_SECONDS = 15;
/** The share of failures that are timeouts. Most receivers that fail answer at once. */
const TIMEOUT_SHARE = 0.3;
/** Mean over median of the time to answer, for the long tail of receivers. */
const MEAN_OVER_MEDIAN = 1.3;
const SOCKETS_PER_PROCESS = 2_000;
const MEMORY_LIMITS_MB = 256;

/** What one PostgreSQL on a large machine can do. Not measured here, except for the number of shards. */
const ONE_POSTGRES = {
  cores: 64,
  /** A local NVMe drive sustains more, a network volume often less. */
  walBytesPerSecond: 500e6,
  connections: 5_000,
  workers: 256,
};

export function ratesOf(
  eventsPerSecond: number,
  demand: Pick<Demand, 'fanOut' | 'failures' | 'payloadBytes'>,
): Rates {
  const deliveries = eventsPerSecond * demand.fanOut;
  return {
    events: eventsPerSecond,
    deliveries,
    // Each attempt fails with the same probability, so a delivery has 1 / (1 - failures) attempts.
    retries: (deliveries * demand.failures) / (1 - demand.failures),
    kilobytes: (eventsPerSecond * demand.payloadBytes) / 1_000,
  };
}

/**
 * Transactions per second that a kind of process takes part in. A process accepts in one transaction at a time what
 * arrived during the last one, and stores results likewise. So at low rates each event has a transaction of its own.
 */
export function transactionsOf(
  { events, deliveries, retries }: Rates,
  processes: ProcessCounts,
  transactionMs: number,
): Readonly<Record<ProcessKind, number>> {
  // After a transaction a process waits for something to store, and then for the next transaction.
  const shared = (rate: number, count: number): number =>
    rate / (1 + ((rate / count) * transactionMs) / 1_000);
  const api = shared(events, processes.api);
  const worker = shared(deliveries + retries, processes.worker);
  return { api, worker, postgres: api + worker };
}

export const costOf = (rates: Rates, transactions: number, costs: Costs): number =>
  rates.events * costs.event +
  rates.deliveries * costs.delivery +
  rates.retries * costs.retry +
  rates.kilobytes * costs.kilobyte +
  transactions * costs.transaction;

/** Busy cores, without what idle processes need. */
export const coresOf = (
  rates: Rates,
  costs: UnitCosts,
  kind: ProcessKind,
  processes: ProcessCounts,
): number =>
  costOf(rates, transactionsOf(rates, processes, costs.transactionMs)[kind], costs.cpu[kind]) / 1e6;

export function predict(demand: Demand, costs: UnitCosts): Prediction {
  const mean = ratesOf(demand.eventsPerDay / SECONDS_PER_DAY, demand);
  const peak = ratesOf((demand.eventsPerDay / SECONDS_PER_DAY) * demand.peakFactor, demand);
  const sockets = socketsOf(peak, demand);
  const processes = processesFor(peak, sockets, costs);
  const all = processes.api + processes.worker;
  const idle = { api: processes.api, worker: processes.worker, postgres: all };
  const cores = Object.fromEntries(
    processKinds.map((kind) => [
      kind,
      coresOf(peak, costs, kind, processes) + idle[kind] * costs.idleCores[kind],
    ]),
  ) as Record<ProcessKind, number>;
  const nodes = Math.max(2, Math.ceil(all / demand.coresPerNode));
  const connections = all * costs.connections;
  const transactions = (rates: Rates): number =>
    transactionsOf(rates, processes, costs.transactionMs).postgres;
  const walBytesPerSecond = costOf(peak, transactions(peak), costs.walBytes);
  const diskBytesPerDay = costOf(mean, transactions(mean), costs.diskBytes) * SECONDS_PER_DAY;
  const limits = limitsOf({
    cores: cores.postgres / UTILIZATION,
    walBytesPerSecond,
    connections,
    workers: processes.worker,
  });
  return {
    mean,
    peak,
    cores,
    processes,
    nodes,
    postgresCores: Math.max(2, Math.ceil(cores.postgres / UTILIZATION)),
    memoryPerNodeMb: memoryOf(Math.ceil(all / nodes), demand, costs),
    sockets,
    connections,
    walBytesPerSecond,
    walBytesPerDay: costOf(mean, transactions(mean), costs.walBytes) * SECONDS_PER_DAY,
    diskBytesPerDay,
    diskBytes: diskBytesPerDay * demand.keepDays,
    limits,
    deployments: Math.max(1, Math.ceil(limits[0]!.use)),
  };
}

function processesFor(peak: Rates, sockets: number, costs: UnitCosts): ProcessCounts {
  let processes: ProcessCounts = { api: 1, worker: Math.max(1, Math.ceil(sockets / SOCKETS_PER_PROCESS)) };
  // More processes have more and smaller transactions, so they may need further processes. This ends, because a transaction
  // stores at least one event or result.
  for (;;) {
    const needed = (kind: keyof ProcessCounts): number =>
      Math.max(
        processes[kind],
        Math.ceil(coresOf(peak, costs, kind, processes) / (UTILIZATION - costs.idleCores[kind])),
      );
    const next = { api: needed('api'), worker: needed('worker') };
    if (next.api === processes.api && next.worker === processes.worker) return processes;
    processes = next;
  }
}

/** Little's law: requests per second times their time on the wire. */
function socketsOf({ deliveries, retries }: Rates, { receiverMs, failures }: Demand): number {
  const answerSeconds = (receiverMs / 1_000) * MEAN_OVER_MEDIAN;
  const meanSeconds =
    (1 - failures * TIMEOUT_SHARE) * answerSeconds + failures * TIMEOUT_SHARE * TIMEOUT_SECONDS;
  return Math.ceil((deliveries + retries) * meanSeconds);
}

/** Every process knows all endpoints, and holds bounded amounts of deliveries and requests. */
function memoryOf(processes: number, { endpoints }: Demand, costs: UnitCosts): number {
  const endpointsMb = (endpoints * costs.endpointBytes) / 1e6;
  return Math.ceil(processes * (costs.processMegabytes + MEMORY_LIMITS_MB + endpointsMb));
}

function limitsOf(needs: Readonly<Record<keyof typeof ONE_POSTGRES, number>>): Limit[] {
  const limit = (key: keyof typeof ONE_POSTGRES, name: string, advice: string): Limit => ({
    name,
    use: needs[key] / ONE_POSTGRES[key],
    advice,
  });
  return [
    limit(
      'cores',
      'cores of PostgreSQL',
      'give tenants to further deployments, each with a PostgreSQL of its own',
    ),
    limit('walBytesPerSecond', 'write-ahead log', 'use local NVMe drives for it, or divide the tenants'),
    limit('connections', 'connections to PostgreSQL', 'use larger processes, or divide the tenants'),
    limit('workers', 'shards', 'there are 256, so at most 256 workers; divide the tenants'),
  ].toSorted((a, b) => b.use - a.use);
}
