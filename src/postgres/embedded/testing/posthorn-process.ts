/**
 * Stands in for a Posthorn in a process of its own, so that tests can kill it. Reports to its parent, and ends with it.
 * Its one argument is the options as JSON.
 */
import { startEmbeddedPostgres } from '../index.ts';

const say = (message: unknown) => process.send?.(message);
const options = JSON.parse(process.argv[2]!) as { dataDir: string; systemDir?: string };

process.on('message', async (command) => {
  if (command === 'stop') await running?.stop();
  // 'exit' is a program that forgets to stop; 'detach' one that has nothing more to do.
  if (command === 'detach') process.disconnect();
  else process.exit(0);
});

const log: string[] = [];
const running = await startEmbeddedPostgres({ ...options, log: (line) => log.push(line) }).catch((error) => {
  say({ failed: { code: error.code, message: error.message, hint: error.hint, stack: error.stack }, log });
  process.exitCode = 1;
  process.disconnect();
  return undefined;
});
if (running) say({ started: { connectionString: running.connectionString, dataDir: running.dataDir }, log });
