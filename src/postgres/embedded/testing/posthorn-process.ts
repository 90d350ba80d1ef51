/**
 * A stand-in for Posthorn in its own process, so that tests can kill it. It reports to its parent and ends with it. Its
 * only argument is the options as JSON.
 */
import { startEmbeddedPostgres } from '../index.ts';

const report = (message: unknown) => process.send?.(message);
const options = JSON.parse(process.argv[2]!) as { dataDir: string; systemDir?: string };

process.on('message', async (command) => {
  if (command === 'stop') await running?.stop();
  // 'exit': ends without stopping the server. 'detach': has nothing more to do and ends by itself.
  if (command === 'detach') process.disconnect();
  else process.exit(0);
});

const log: string[] = [];
const running = await startEmbeddedPostgres({ ...options, log: (line) => log.push(line) }).catch((error) => {
  report({ failed: { code: error.code, message: error.message, hint: error.hint, stack: error.stack }, log });
  process.exitCode = 1;
  process.disconnect();
  return undefined;
});
if (running)
  report({ started: { connectionString: running.connectionString, dataDir: running.dataDir }, log });
