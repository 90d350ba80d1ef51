/**
 * The PostgreSQL server that Posthorn starts if DATABASE_URL is not set.
 *
 *   find the home → take the lock → choose the user and the binaries → is there a database?
 *     → no: create one    → yes: stop the server that a killed Posthorn left
 *     → start it → log in once
 *
 * The process can be killed at any step; the next start recovers. docs/adr/0002 has the reasons.
 */
import { type Binaries, findBinaries } from './binaries.ts';
import { buildConnectionString, checkConnection } from './check-connection.ts';
import { createCluster } from './create-cluster.ts';
import { EmbeddedPostgresError, OWN_SERVER_HINT } from './errors.ts';
import { explainFileError } from './explain-failure.ts';
import { findHome, type Home } from './home.ts';
import { inspectCluster } from './inspect-cluster.ts';
import { keepRunning } from './keep-running.ts';
import { launchServer } from './launch-server.ts';
import { clearLeftoverServer } from './leftover-server.ts';
import { takePosthornLock } from './posthorn-lock.ts';
import type { RunAs } from './run-command.ts';
import { rotateServerLogRegularly } from './server-log.ts';
import { writeSettings } from './server-settings.ts';
import { chooseServerUser, giveClusterTo } from './server-user.ts';
import { prepareSocketDirectory, removeSocketDirectory } from './socket-directory.ts';

export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './errors.ts';
export { type FoundPostgres, findEmbeddedPostgres } from './find-running.ts';

export interface EmbeddedPostgres {
  /** For `pg`: database `posthorn`, user `posthorn`, a superuser of this cluster. Holds the password. */
  readonly connectionString: string;
  /** Where its files are: the data directory, or the directory below /var/lib/posthorn that replaces it. */
  readonly dataDir: string;
  /** Shuts PostgreSQL down and releases the data directory. May be called several times, also concurrently. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** Created if missing; the cluster goes into `<dataDir>/postgres`. */
  readonly dataDir: string;
  /** Called with one human-readable line at a time. */
  readonly log?: (line: string) => void;
  /** Extra PostgreSQL settings. They override all others. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Extra environment variables of the server process. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Where root puts files that PostgreSQL's user could not reach in the data directory. */
  readonly systemDir?: string;
  /** Called while PostgreSQL starts, so that the caller can do other work meanwhile. */
  readonly onSpawned?: () => void;
}

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError(
      'unsupported_platform',
      'The embedded PostgreSQL does not run on Windows.',
      OWN_SERVER_HINT,
    );
  }
  try {
    return await start(options);
  } catch (error) {
    throw explainFileError(error, options.dataDir);
  }
}

async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log = () => {}, settings = {}, environment = {}, onSpawned } = options;
  const { systemDir = '/var/lib/posthorn' } = options;
  const home = await findHome(dataDir, systemDir, log);
  const lock = await takePosthornLock(home);
  const undo: (() => unknown)[] = [lock.release];
  try {
    const runAs = await chooseServerUser(home.cluster);
    const binaries = await findBinaries(runAs, systemDir, log);
    await prepareCluster(home, binaries, runAs, log);
    undo.push(() => removeSocketDirectory(home).catch(() => {}));
    const socketDirectory = await prepareSocketDirectory(home, runAs);
    const connectionString = await buildConnectionString(home, socketDirectory);

    const launch = {
      home,
      binaries,
      runAs,
      socketDirectory,
      extraSettings: settings,
      environment,
      log,
      onSpawned,
    };
    const server = keepRunning(
      await launchServer(launch),
      async () => {
        await clearLeftoverServer(home, log);
        return launchServer(launch);
      },
      log,
    );
    undo.push(server.stop, rotateServerLogRegularly(home));
    await checkConnection(home, connectionString);

    const stop = async () => {
      for (const step of undo.reverse()) await step();
    };
    let stopped: Promise<void> | undefined;
    return {
      connectionString,
      dataDir: home.dir,
      stop() {
        stopped ??= stop();
        return stopped;
      },
    };
  } catch (error) {
    for (const step of undo.reverse()) await step();
    throw error;
  }
}

/** Makes sure that there is a complete cluster with current settings, and that no server uses it. */
async function prepareCluster(
  home: Home,
  binaries: Binaries,
  runAs: RunAs,
  log: (line: string) => void,
): Promise<void> {
  const major = binaries.version.split('.')[0]!;
  if ((await inspectCluster(home, major)) === 'absent') {
    await createCluster(home, binaries, runAs);
    log(`Created a PostgreSQL ${binaries.version} database in ${home.dir}`);
  } else {
    await clearLeftoverServer(home, log);
    await giveClusterTo(runAs, home.cluster);
  }
  await writeSettings(home, runAs);
}
