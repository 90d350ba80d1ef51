import type { RunningServer } from './launch-server.ts';

const MAX_RESTARTS = 3;
const RESTART_WINDOW_MS = 60_000;

/**
 * Restarts a server that ends unexpectedly (for example through the kernel's out-of-memory killer) on the same socket,
 * so that pools just reconnect. Gives up, with a log line, if the server keeps ending.
 */
export function keepRunning(
  first: RunningServer,
  relaunch: () => Promise<RunningServer>,
  log: (line: string) => void,
): { stop(): Promise<void> } {
  let server = first;
  let stopping = false;
  let restarting: Promise<void> = Promise.resolve();
  let restarts: number[] = [];

  const watch = () => {
    void server.ended.then((how) => {
      if (!stopping) restarting = restart(how);
    });
  };

  const restart = async (how: string) => {
    restarts = restarts.filter((at) => at > Date.now() - RESTART_WINDOW_MS);
    if (restarts.length >= MAX_RESTARTS) {
      log(
        `PostgreSQL ended ${MAX_RESTARTS + 1} times within a minute (last: ${how}); giving up. Look at its log and restart Posthorn`,
      );
      return;
    }
    restarts.push(Date.now());
    log(`PostgreSQL ended unexpectedly (${how}); restarting it`);
    try {
      server = await relaunch();
      watch();
    } catch (error) {
      log(`PostgreSQL could not be restarted: ${error instanceof Error ? error.message : error}`);
    }
  };

  watch();
  return {
    async stop() {
      stopping = true;
      await restarting;
      await server.stop();
    },
  };
}
