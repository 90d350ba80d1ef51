import { setPriority } from 'node:os';
import { type Config, ConfigError, loadConfig } from '../../config/index.ts';
import { newId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/retention.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Arguments } from '../arguments.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../usage-error.ts';

export const archive: Command = {
  name: 'archive',
  summary: 'list, verify, restore and query archived events',
  usage: 'posthorn archive run',
  about: `Works on the archive at POSTHORN_ARCHIVE_URL. docs/retention.md explains it.
  run      archive what has expired, now. Servers do this by themselves`,
  actions: ['run'],
  async run(args) {
    const config = loadConfig({ mode: 'serve', env: process.env, flags: args.flags });
    const action = args.positionals[1];
    if (action === 'run') return runArchiveProcess(config, args);
    throw new UsageError(`Usage: ${archive.usage}`);
  },
};

function urlOf({ archiveUrl }: Config): string {
  const name = 'POSTHORN_ARCHIVE_URL';
  if (archiveUrl === null)
    throw new ConfigError([{ name, message: `${name} is not set: there is no archive.` }]);
  return archiveUrl;
}

/** One for the lock, one for the work, one to spare. */
const CONNECTIONS = 3;

async function runArchiveProcess(config: Config, _args: Arguments): Promise<number> {
  const url = urlOf(config);
  const log = createLog(config);
  const [{ runArchive }, { openDatabase }, { createPostgresArchiveStore }] = await Promise.all([
    import('../../archive/index.ts'),
    import('../../postgres/database.ts'),
    import('../../postgres/archive-store.ts'),
  ]);
  if (config.databaseUrl === null)
    throw new ConfigError([{ name: 'DATABASE_URL', message: 'DATABASE_URL is not set.' }]);
  beNice();
  let isStopped = false;
  const stop = (): void => {
    // Between two steps; if it takes too long, at once. Both are safe.
    isStopped = true;
    setTimeout(() => process.exit(1), 3_000).unref();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop).once('disconnect', stop);
  const database = openDatabase({
    connectionString: config.databaseUrl,
    apiConnections: CONNECTIONS,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  try {
    await runArchive(
      {
        store: createPostgresArchiveStore(database),
        url,
        runner: newId(Date.now()),
        now: Date.now,
        silentMs: config.taskTakeoverMs,
        restoreKeepMs: config.restoreDays * DAY_MS,
        onExported: (exported) => {
          log.info(exported, 'archived a file');
          process.send?.({ rows: exported.rows, bytes: exported.bytes });
        },
        onVerified: (verified) => log.info(verified, 'archived a partition'),
        onRewritten: (part) => log.info({ part }, 'removed expunged data from the archive'),
      },
      () => isStopped,
    );
    return 0;
  } catch (error) {
    log.error({ err: error }, 'the archive failed');
    return 1;
  } finally {
    await database.close();
  }
}

/** Deliveries come first. */
function beNice(): void {
  try {
    setPriority(19);
  } catch {
    // Not on this system.
  }
}
