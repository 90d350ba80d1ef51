/** Runs jobs on worker threads. A result depends on its job alone, so the number of threads changes nothing but the time. */
import { Worker } from 'node:worker_threads';
import type { Job, JobResults } from './jobs.ts';

interface Message {
  readonly number: number;
  readonly result: unknown;
  readonly seconds: number;
}

export class Pool {
  readonly #threads: number;
  readonly #jobs: Job[] = [];
  readonly #resolvers: ((result: unknown) => void)[] = [];
  readonly #onProgress: (done: number, of: number, seconds: number) => void;

  constructor(threads: number, onProgress: (done: number, of: number, seconds: number) => void) {
    this.#threads = threads;
    this.#onProgress = onProgress;
  }

  /** Adds a job. Its promise resolves during `run`. */
  add<J extends Job>(job: J): Promise<JobResults[J['kind']]> {
    this.#jobs.push(job);
    return new Promise((resolve) => this.#resolvers.push(resolve as (result: unknown) => void));
  }

  /** Runs all jobs that were added. Rejects if a job fails. */
  async run(): Promise<void> {
    let [next, done] = [0, 0];
    const runThread = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL('./worker.ts', import.meta.url));
        const sendNext = (): void => {
          const number = next;
          next += 1;
          const job = this.#jobs[number];
          if (job !== undefined) return worker.postMessage({ number, job });
          void worker.terminate().then(() => resolve());
        };
        worker.on('message', ({ number, result, seconds }: Message) => {
          done += 1;
          this.#resolvers[number]!(result);
          this.#onProgress(done, this.#jobs.length, seconds);
          sendNext();
        });
        worker.on('error', reject);
        sendNext();
      });
    const threads = Math.min(this.#threads, this.#jobs.length);
    await Promise.all(Array.from({ length: threads }, runThread));
  }
}
