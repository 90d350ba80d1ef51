/** A worker thread: runs the jobs that it gets, one after the other. */
import { parentPort } from 'node:worker_threads';
import { type Job, runJob } from './jobs.ts';

parentPort!.on('message', ({ number, job }: { number: number; job: Job }) => {
  const startedAt = performance.now();
  void runJob(job).then((result) =>
    parentPort!.postMessage({ number, result, seconds: (performance.now() - startedAt) / 1000 }),
  );
});
