/** What one event, delivery, retry, kilobyte and transaction cost. `npm run capacity` measures and writes `measured-costs.ts`. */

export const processKinds = ['api', 'worker', 'postgres'] as const;
export type ProcessKind = (typeof processKinds)[number];

/** One kind of cost (processor time, disk or another), by what causes it. */
export interface Costs {
  /** Of accepting an event with an empty payload. */
  readonly event: number;
  /** Of a delivery that succeeds at the first attempt. */
  readonly delivery: number;
  /** Of each further attempt. */
  readonly retry: number;
  /** Of a kilobyte of payload, per event with one delivery. */
  readonly kilobyte: number;
  /** Of a transaction, however many events or results it stores. */
  readonly transaction: number;
}

export interface UnitCosts {
  /** Microseconds of CPU. */
  readonly cpu: Readonly<Record<ProcessKind, Costs>>;
  /** Cores that a process needs whatever it does; for PostgreSQL, that it needs for each process of Posthorn. */
  readonly idleCores: Readonly<Record<ProcessKind, number>>;
  /** How long a transaction takes. What arrives meanwhile shares the next one. */
  readonly transactionMs: number;
  readonly walBytes: Costs;
  readonly diskBytes: Costs;
  /** Resident memory of a process without endpoints. */
  readonly processMegabytes: number;
  /** Resident memory per endpoint: in each process, and in the worker that owns it. */
  readonly endpointBytes: number;
  /** Disk of a delivery that waits, without its event. */
  readonly waitingBytes: number;
  /** Connections to PostgreSQL per process. */
  readonly connections: number;
  readonly measuredOn: string;
}
