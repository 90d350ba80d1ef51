import { expect, test } from 'vitest';
import { keepRunning } from './keep-running.ts';
import type { RunningServer } from './launch-server.ts';

class FakeServer implements RunningServer {
  readonly #end = Promise.withResolvers<string>();
  readonly ended = this.#end.promise;
  isStopped = false;

  crash(): void {
    this.#end.resolve('signal SIGKILL');
  }
  async stop(): Promise<void> {
    this.isStopped = true;
    this.#end.resolve('exit code 0');
  }
}

/** Waits until the callbacks of settled promises have run. */
const callbacksToRun = () => new Promise((resolve) => setImmediate(resolve));

test('a server that keeps crashing is restarted only three times', async () => {
  const servers = [new FakeServer()];
  const lines: string[] = [];
  const kept = keepRunning(
    servers[0]!,
    async () => {
      const next = new FakeServer();
      servers.push(next);
      return next;
    },
    (line) => lines.push(line),
  );
  for (let crash = 0; crash < 4; crash++) {
    servers.at(-1)!.crash();
    await callbacksToRun();
  }
  expect(servers).toHaveLength(4);
  expect(lines.at(-1)).toMatch(/ended 4 times within a minute .*giving up/);
  await kept.stop();
});

test('a stop during a restart waits for it, and stops the new server', async () => {
  const first = new FakeServer();
  const second = new FakeServer();
  const restart = Promise.withResolvers<RunningServer>();
  const kept = keepRunning(
    first,
    () => restart.promise,
    () => {},
  );
  first.crash();
  await callbacksToRun();
  const stopped = kept.stop();
  restart.resolve(second);
  await stopped;
  await callbacksToRun();
  expect(second.isStopped).toBe(true);
});

test('a server that was stopped on request is not restarted', async () => {
  const first = new FakeServer();
  const kept = keepRunning(first, () => Promise.reject(new Error('must not be called')), expect.unreachable);
  await kept.stop();
  await callbacksToRun();
  expect(first.isStopped).toBe(true);
});
