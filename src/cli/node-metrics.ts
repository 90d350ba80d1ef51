/**
 * `/metrics` of a node with several processes. A scrape reaches one of the children that answer the API, and should
 * show all children:
 *
 *   child ── gather ──▶ supervisor ── read ──▶ every child
 *   child ◀─ gathered ─ supervisor ◀─ samples ── those that answer in time
 *
 * Each sample has a label `process` and is not summed here: a sum would fall when a child restarts, and Prometheus
 * would count the rest as an increase.
 */
import type { Worker } from 'node:cluster';
import { addLabels, processCounts, type Sample } from '../telemetry/metrics/index.ts';

const READ = 'posthorn:metrics:read';
const SAMPLES = 'posthorn:metrics:samples';
const GATHER = 'posthorn:metrics:gather';
const GATHERED = 'posthorn:metrics:gathered';

type Message =
  | { readonly kind: typeof READ | typeof GATHER; readonly id: number }
  | { readonly kind: typeof SAMPLES | typeof GATHERED; readonly id: number; readonly samples: Sample[] };

const isMessage = (message: unknown): message is Message =>
  typeof message === 'object' &&
  message !== null &&
  'kind' in message &&
  String(message.kind).startsWith('posthorn:metrics:');

/** A child that does not answer within this time is left out; `posthorn_processes` shows that. */
const CHILD_TIMEOUT_MS = 1_000;
const SUPERVISOR_TIMEOUT_MS = 2_000;

export interface Child {
  readonly process: number;
  readonly worker: Worker;
}

/** The supervisor's side: gathers the metrics of all children for the child that asks. */
export class NodeMetrics {
  readonly #expected: number;
  readonly #children: () => readonly Child[];
  readonly #waiting = new Map<number, (samples: Sample[]) => void>();
  #lastId = 0;

  constructor(expected: number, children: () => readonly Child[]) {
    this.#expected = expected;
    this.#children = children;
  }

  listen(worker: Worker): void {
    worker.on('message', (message: unknown) => {
      if (!isMessage(message)) return;
      if (message.kind === SAMPLES) this.#waiting.get(message.id)?.(message.samples);
      if (message.kind === GATHER) void this.#answer(worker, message.id);
    });
  }

  async #answer(worker: Worker, id: number): Promise<void> {
    const parts = await Promise.all(this.#children().map((child) => this.#read(child)));
    const answered = parts.filter((part) => part !== null);
    const samples = [...answered.flat(), ...processCounts(this.#expected, answered.length)];
    send(worker, { kind: GATHERED, id, samples });
  }

  #read({ process, worker }: Child): Promise<Sample[] | null> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const end = (samples: Sample[] | null): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(samples && addLabels(samples, { process: String(process) }));
      };
      const timer = setTimeout(() => end(null), CHILD_TIMEOUT_MS);
      this.#waiting.set(id, end);
      send(worker, { kind: READ, id });
    });
  }
}

function send(worker: Worker, message: Message): void {
  // A child that is ending has closed its channel, and does not wait for the message.
  if (worker.isConnected()) worker.send(message, () => {});
}

/** The child's side: answers the supervisor, and asks it to gather the metrics of all children. */
export class ChildMetrics {
  readonly #gathering = new Map<number, (samples: Sample[]) => void>();
  #lastId = 0;

  answerWith(read: () => Sample[]): void {
    process.on('message', (message: unknown) => {
      if (!isMessage(message)) return;
      if (message.kind === READ) this.#send({ kind: SAMPLES, id: message.id, samples: read() });
      if (message.kind === GATHERED) this.#gathering.get(message.id)?.(message.samples);
    });
  }

  /** Resolves with null if the supervisor does not answer. */
  gather(): Promise<Sample[] | null> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const end = (samples: Sample[] | null): void => {
        clearTimeout(timer);
        this.#gathering.delete(id);
        resolve(samples);
      };
      const timer = setTimeout(() => end(null), SUPERVISOR_TIMEOUT_MS);
      this.#gathering.set(id, end);
      this.#send({ kind: GATHER, id });
    });
  }

  #send(message: Message): void {
    if (process.connected === true) process.send!(message, undefined, {}, () => {});
  }
}
