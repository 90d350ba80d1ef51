import cluster from 'node:cluster';
import type { Config } from '../../config/index.ts';
import { preloadApp, startApp } from '../app.ts';
import { serveLine } from '../banner.ts';
import { rolesOfChildren } from '../child-roles.ts';
import type { Command } from '../command.ts';
import { findDatabase, migrateDatabase } from '../database.ts';
import { ChildMetrics } from '../node-metrics.ts';
import { print } from '../print.ts';
import { runServer, type ServerContext } from '../server-command.ts';
import { removeSiblingsDirectory } from '../siblings-directory.ts';
import { requestsOfSupervisor, signalsOfUser } from '../stop-requests.ts';
import {
  CONFIGURATION_EXIT_CODE,
  reportListening,
  reportReady,
  roleOfChild,
  Supervisor,
  siblingsOfChild,
  WAITING_ROLE,
} from '../supervisor.ts';
import { readVersion } from '../version.ts';
import { waitForDatabase } from '../wait-for-database.ts';
import { answerProbes, createWaitingChild } from '../waiting-child.ts';
import { closeAtOnce, listenForProbes, WaitingServer } from '../waiting-server.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'production: roles, several processes',
  usage: 'posthorn serve [--role all|api|worker] [--processes N] [--no-wait]',
  about: `Starts Posthorn for production. POSTHORN_ADMIN_KEY and POSTHORN_ENCRYPTION_KEY must be set, and DATABASE_URL
should be. --processes N starts N child processes: one in three answers the API, the others deliver. A child that
crashes is restarted; with three or more processes, another worker takes over from one that hangs.
If the database cannot be reached at the start, Posthorn waits for it and answers GET /readyz with 503; with --no-wait
it exits with an error.
SIGTERM stops it gracefully: it serves requests for POSTHORN_LAME_DUCK_MS (5 s) while GET /readyz is 503, then finishes
within POSTHORN_DRAIN_MS (20 s). A second signal stops it at once. npx does not pass SIGTERM on.`,
  run: (args) => {
    if (cluster.isWorker) {
      return runServer({
        mode: 'serve',
        args,
        stopRequests: requestsOfSupervisor,
        quiet: true,
        exitCodeOf: ({ isTransient }) => (isTransient ? 1 : CONFIGURATION_EXIT_CODE),
        start: roleOfChild() === WAITING_ROLE ? answerProbes : startChild,
      });
    }
    return runServer({ mode: 'serve', args, stopRequests: signalsOfUser, start });
  },
};

async function start(context: ServerContext): Promise<void> {
  const { config, log, running, stopping } = context;
  const needsApp = config.processes === 1;
  const databaseUrl = await findDatabase(config, log, running, needsApp ? preloadApp : undefined);
  if (stopping.aborted) return;
  const url = await (config.processes > 1 ? startChildren : startHere)(context, databaseUrl);
  if (!stopping.aborted) print(serveLine(readVersion(), config.role, url));
}

async function startHere(context: ServerContext, databaseUrl: string): Promise<string> {
  const { config, log, running } = context;
  const waiting = new WaitingServer(config, listenForProbes, closeAtOnce);
  waiting.openIfSlow();
  running.push(waiting);
  const app = await waitForDatabase({ ...context, databaseUrl, onWaiting: () => waiting.open() }, () =>
    startApp({ config: { ...config, databaseUrl }, log, takeOverPort: () => waiting.release() }),
  );
  if (app === null) return '';
  running.push({ name: 'app', stop: () => app.stop() });
  return app.url;
}

async function startChildren(context: ServerContext, databaseUrl: string): Promise<string> {
  const { config, log, running, stopping } = context;
  const program = { exec: process.argv[1]!, args: process.argv.slice(2), env: { DATABASE_URL: databaseUrl } };
  const waiting = createWaitingChild(config, program);
  waiting.openIfSlow();
  running.push(waiting);
  // Migrate once here, not in every child.
  await waitForDatabase({ ...context, databaseUrl, onWaiting: () => waiting.open() }, () =>
    migrateDatabase(config.directDatabaseUrl ?? databaseUrl, log),
  );
  if (stopping.aborted) return '';
  const supervisor = new Supervisor({
    ...program,
    roles: rolesOfChildren(config.role, config.processes),
    log,
    onListening: () => waiting.close(),
  });
  running.push(supervisor);
  const stopped = new Promise<string>((resolve) =>
    stopping.addEventListener('abort', () => resolve(''), { once: true }),
  );
  return Promise.race([supervisor.start(), stopped]);
}

async function startChild(context: ServerContext): Promise<void> {
  const { config, log, running, stopping } = context;
  const metrics = new ChildMetrics();
  const role = (roleOfChild() ?? config.role) as Config['role'];
  const siblings = siblingsOfChild();
  running.push({ name: 'sockets between siblings', stop: async () => removeSocketsOfOrphans(siblings) });
  const databaseUrl = config.databaseUrl!;
  const app = await waitForDatabase({ ...context, databaseUrl }, () =>
    startApp({
      config: { ...config, role, databaseUrl },
      log,
      // A worker that shared the port would get a part of the API's requests.
      listens: role === config.role || role === 'api',
      onListening: reportListening,
      gatherMetrics: () => metrics.gather(),
      siblings,
    }),
  );
  if (app === null) return;
  running.push({ name: 'app', stop: () => app.stop() });
  metrics.answerWith(() => app.readMetrics());
  if (!stopping.aborted) reportReady(app.url);
}

/** Removes the sockets if the supervisor was killed and could not do it. */
function removeSocketsOfOrphans(siblings: { directory: string } | undefined): void {
  if (!process.connected && siblings !== undefined) removeSiblingsDirectory(siblings.directory);
}
