/**
 * A real PostgreSQL that Posthorn brings along, for everyone who has not set DATABASE_URL.
 *
 *   find the place → take the lock → who runs it, with what → is there a database?
 *     → no: create one    → yes: clear away what a killed Posthorn left
 *     → start it → log in once
 *
 * Every step can be killed; the next start then does the right thing by itself. docs/adr/0002 has the reasons.
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
import { keepServerLogBounded } from './server-log.ts';
import { writeSettings } from './server-settings.ts';
import { chooseServerUser, giveClusterTo } from './server-user.ts';
import { prepareSocketDirectory, removeSocketDirectory } from './socket-directory.ts';

export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './errors.ts';
export { type FoundPostgres, findEmbeddedPostgres } from './find-running.ts';

export interface EmbeddedPostgres {
  /** For `pg`: database `posthorn`, user `posthorn`, a superuser of this cluster. Holds the password. */
  readonly connectionString: string;
  /** Where its files are: the data directory, or the place below /var/lib/posthorn that stands in for it. */
  readonly dataDir: string;
  /** Shuts PostgreSQL down and gives the data directory free. May be called twice, also at once. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** Created if missing; the cluster goes into `<dataDir>/postgres`. */
  readonly dataDir: string;
  /** One line for people at a time. */
  readonly log?: (line: string) => void;
  /** Extra PostgreSQL settings, over all others. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where root puts what PostgreSQL's user could not reach in the data directory. */
  readonly systemDir?: string;
  /** Called while PostgreSQL starts: the time to do something else. */
  readonly onSpawned?: () => void;
}

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError(
      'unsupported_platform',
      'There is no embedded PostgreSQL on Windows.',
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
  const { dataDir, log = () => {}, settings = {}, systemDir = '/var/lib/posthorn', onSpawned } = options;
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

    const launch = { home, binaries, runAs, socketDirectory, extraSettings: settings, log, onSpawned };
    const server = keepRunning(
      await launchServer(launch),
      async () => {
        await clearLeftoverServer(home, log);
        return launchServer(launch);
      },
      log,
    );
    undo.push(server.stop, keepServerLogBounded(home));
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

/** Afterwards there is a complete cluster that nobody uses, with today's settings. */
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
