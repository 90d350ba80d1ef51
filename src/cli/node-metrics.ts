/**
 * `/metrics` of a node with several processes. A scrape reaches one of the children that answer, and should show all of them:
 *
 *   child ── gather ──▶ supervisor ── read ──▶ every child
 *   child ◀─ gathered ─ supervisor ◀─ samples ── those that answer in time
 *
 * The samples of each keep their own label `process` and are not summed here: a sum would fall when a child is
 * restarted, and Prometheus would take what is left for an increase.
 */
import type { Worker } from 'node:cluster';
import { labelled, processCounts, type Sample } from '../telemetry/metrics/index.ts';

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

/** A child that is starting, or busier than this, is left out; `posthorn_processes` tells. */
const CHILD_MS = 1_000;
const SUPERVISOR_MS = 2_000;

export interface Child {
  readonly process: number;
  readonly worker: Worker;
}

/** The supervisor's side. */
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
        resolve(samples && labelled(samples, { process: String(process) }));
      };
      const timer = setTimeout(() => end(null), CHILD_MS);
      this.#waiting.set(id, end);
      send(worker, { kind: READ, id });
    });
  }
}

function send(worker: Worker, message: Message): void {
  // It may end just now: then nobody waits for the answer.
  if (worker.isConnected()) worker.send(message, () => {});
}

/** A child's side: answers the supervisor, and has it ask all children. */
export class ChildMetrics {
  readonly #gathering = new Map<number, (samples: Sample[]) => void>();
  #lastId = 0;

  answerWith(read: () => Sample[]): void {
    process.on('message', (message: unknown) => {
      if (!isMessage(message)) return;
      if (message.kind === READ) this.#tell({ kind: SAMPLES, id: message.id, samples: read() });
      if (message.kind === GATHERED) this.#gathering.get(message.id)?.(message.samples);
    });
  }

  /** Null: the supervisor does not answer. */
  gather(): Promise<Sample[] | null> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const end = (samples: Sample[] | null): void => {
        clearTimeout(timer);
        this.#gathering.delete(id);
        resolve(samples);
      };
      const timer = setTimeout(() => end(null), SUPERVISOR_MS);
      this.#gathering.set(id, end);
      this.#tell({ kind: GATHER, id });
    });
  }

  #tell(message: Message): void {
    if (process.connected === true) process.send!(message, undefined, {}, () => {});
  }
}
