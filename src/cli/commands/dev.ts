import { preloadApp, startApp } from '../app.ts';
import { devBanner } from '../banner.ts';
import type { Command } from '../command.ts';
import { findDatabase } from '../database.ts';
import { print } from '../print.ts';
import { runServer, type ServerContext } from '../server-command.ts';
import { signalsOfUser } from '../stop-requests.ts';
import { readVersion } from '../version.ts';

export const dev: Command = {
  name: 'dev',
  summary: 'everything in one process, on an embedded PostgreSQL',
  usage: 'posthorn dev [--port 8787] [--data-dir ./.posthorn]',
  about: `Starts API, console and delivery in one process. Without DATABASE_URL it uses an embedded PostgreSQL in
the data directory. The first start generates the admin key and the encryption key and stores them there too.
Receivers on this machine are allowed, also with http.`,
  run: (args) => runServer({ mode: 'dev', args, stopRequests: signalsOfUser, start }),
};

async function start({ config, log, running, stopping }: ServerContext): Promise<void> {
  const databaseUrl = await findDatabase(config, log, running, preloadApp);
  if (stopping.aborted) return;
  const app = await startApp({ config: { ...config, databaseUrl }, log });
  running.push({ name: 'app', stop: () => app.stop() });
  print(devBanner({ version: readVersion(), url: app.url, adminKey: app.adminKey ?? config.adminKey }));
}
