import cluster from 'node:cluster';
import { preloadApp, startApp } from '../app.ts';
import { serveLine } from '../banner.ts';
import { rolesOfChildren } from '../child-roles.ts';
import type { Command } from '../command.ts';
import { findDatabase, migrateDatabase } from '../database.ts';
import { ChildMetrics } from '../node-metrics.ts';
import { print } from '../print.ts';
import { runServer, type ServerContext } from '../server-command.ts';
import { requestsOfSupervisor, signalsOfUser } from '../stop-requests.ts';
import { roleOfChild, Supervisor, siblingsOfChild, tellSupervisor } from '../supervisor.ts';
import { readVersion } from '../version.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'production: chosen roles, several processes',
  usage: 'posthorn serve [--role all|api|worker] [--processes N]',
  about: `Starts Posthorn for production. POSTHORN_ADMIN_KEY and POSTHORN_ENCRYPTION_KEY must be set, and DATABASE_URL
should be. With --processes N there are N child processes, one in three of which answers the API while the others
deliver; one that crashes is started again, and from three on the others deliver for one that hangs.
SIGTERM stops gracefully within POSTHORN_DRAIN_MS, a second signal at once.`,
  run: (args) => {
    if (cluster.isWorker) {
      return runServer({
        mode: 'serve',
        args,
        stopRequests: requestsOfSupervisor,
        quiet: true,
        start: startChild,
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
  const url =
    config.processes > 1 ? await startChildren(context, databaseUrl) : await startHere(context, databaseUrl);
  if (!stopping.aborted) print(serveLine(readVersion(), config.role, url));
}

async function startHere({ config, log, running }: ServerContext, databaseUrl: string): Promise<string> {
  const app = await startApp({ config: { ...config, databaseUrl }, log, siblings: siblingsOfChild() });
  running.push({ name: 'app', stop: () => app.stop() });
  return app.url;
}

async function startChildren(
  { config, log, running, stopping }: ServerContext,
  databaseUrl: string,
): Promise<string> {
  // Once, here: the children find the schema as it should be.
  await migrateDatabase(databaseUrl, log);
  const supervisor = new Supervisor({
    roles: rolesOfChildren(config.role, config.processes),
    log,
    exec: process.argv[1]!,
    args: process.argv.slice(2),
    env: { DATABASE_URL: databaseUrl },
  });
  running.push(supervisor);
  return supervisor.start().catch((error) => {
    // A signal to the whole group ends children that were not ready yet: that is what was asked for.
    if (stopping.aborted) return '';
    throw error;
  });
}

async function startChild({ config, log, running }: ServerContext): Promise<void> {
  const metrics = new ChildMetrics();
  const role = roleOfChild() ?? config.role;
  const app = await startApp({
    config: { ...config, role, databaseUrl: config.databaseUrl! },
    log,
    // Beside those that answer the API, a worker would get a part of their requests.
    listens: role === config.role || role === 'api',
    gatherMetrics: () => metrics.gather(),
    siblings: siblingsOfChild(),
  });
  running.push({ name: 'app', stop: () => app.stop() });
  metrics.answerWith(() => app.readMetrics());
  tellSupervisor(app.url);
}
