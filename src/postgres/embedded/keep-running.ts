import type { RunningServer } from './launch-server.ts';

const MAX_RESTARTS = 3;
const WITHIN_MS = 60_000;

/**
 * A server that ends without having been asked (the kernel's out-of-memory killer likes it) is started again, on the
 * same socket, so that pools just reconnect. If it keeps ending, we stop trying and say so.
 */
export function keepRunning(
  first: RunningServer,
  startAgain: () => Promise<RunningServer>,
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
    restarts = restarts.filter((at) => at > Date.now() - WITHIN_MS);
    if (restarts.length >= MAX_RESTARTS) {
      log(`PostgreSQL has ended again (${how}), ${MAX_RESTARTS + 1} times within a minute; giving up`);
      return;
    }
    restarts.push(Date.now());
    log(`PostgreSQL has ended by itself (${how}); starting it again`);
    try {
      server = await startAgain();
      watch();
    } catch (error) {
      log(`PostgreSQL could not be started again: ${error instanceof Error ? error.message : error}`);
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
