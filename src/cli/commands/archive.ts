import { setPriority } from 'node:os';
import type { ExportPace } from '../../archive/index.ts';
import { type Config, ConfigError, loadConfig, retentionOf } from '../../config/index.ts';
import { systemClock } from '../../domain/clock.ts';
import { newId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/retention.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../usage-error.ts';

export const archive: Command = {
  name: 'archive',
  summary: 'list, verify, restore and query archived events',
  usage: `posthorn archive ls|verify [--kind events|deliveries|attempts] [--day 2026-11-15] [--json]
       posthorn archive query --day 2026-11-15 | --event evt_… [--kind …] [--tenant acme] [--type order.paid]
       posthorn archive restore --day 2026-11-15 | --event evt_…
       posthorn archive run|off`,
  about: `Works on the archive at POSTHORN_ARCHIVE_URL. docs/retention.md explains it.
  ls       list the days with rows and bytes; with --json the manifests. With DATABASE_URL also partitions that wait, and why
  verify   read all files and compare them with their manifests; with a difference the exit code is 1
  query    print the rows that match, one JSON object per line. For SQL, open the files with DuckDB
  restore  bring a day or an event back with the server at POSTHORN_PUBLIC_URL, and wait until it is done
  run      archive expired partitions now. Servers do this by themselves
  off      delete expired data without an archive again. First unset POSTHORN_ARCHIVE_URL on all servers and restart them
ls, verify and query need neither a server nor a database.`,
  actions: ['ls', 'verify', 'query', 'restore', 'run', 'off'],
  options: ['kind', 'day', 'event', 'tenant', 'type'],
  takesJson: true,
  async run(args) {
    const action = args.positionals[1];
    const hasDatabase = (args.flags['database-url'] ?? process.env.DATABASE_URL ?? '') !== '';
    const mode = hasDatabase || action === 'run' || action === 'off' ? 'serve' : 'dev';
    const config = loadConfig({ mode, env: process.env, flags: args.flags });
    if (action === 'run') return runArchiveProcess(config);
    if (action === 'off') return (await import('../archive/off.ts')).turnArchiveOff(config);
    if (action === 'restore') return (await import('../archive/restore.ts')).restoreFromArchive(config, args);
    const { listArchive, verifyArchive, queryArchive } = await import('../archive/inspect.ts');
    const place = { url: urlOf(config), pathStyle: config.archivePathStyle };
    if (action === 'ls') return listArchive(place, args, config.directDatabaseUrl ?? config.databaseUrl);
    if (action === 'verify') return verifyArchive(place, args);
    if (action === 'query') return queryArchive(place, args);
    throw new UsageError(`Usage: ${archive.usage}`);
  },
};

function urlOf({ archiveUrl }: Config): string {
  const name = 'POSTHORN_ARCHIVE_URL';
  if (archiveUrl === null)
    throw new ConfigError([{ name, message: `${name} is not set: there is no archive.` }]);
  return archiveUrl;
}

/** One connection for the lock, one for the work, and one spare. */
const CONNECTIONS = 3;

async function runArchiveProcess(config: Config): Promise<number> {
  const url = urlOf(config);
  const log = createLog(config);
  const [{ ExportPace, runArchive }, { openDatabase }, { createPostgresArchiveStore }] = await Promise.all([
    import('../../archive/index.ts'),
    import('../../postgres/database.ts'),
    import('../../postgres/archive-store.ts'),
  ]);
  if (config.databaseUrl === null)
    throw new ConfigError([
      { name: 'DATABASE_URL', message: 'DATABASE_URL is not set. Set it to the database to archive.' },
    ]);
  lowerPriority();
  const database = openDatabase({
    connectionString: config.databaseUrl,
    apiConnections: CONNECTIONS,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  const store = createPostgresArchiveStore(database);
  const days = retentionOf(config);
  const pace = new ExportPace({
    // A person who runs the command waits for it.
    maxBusy: isStartedByServer() ? config.archiveMaxBusy : 1,
    clock: systemClock,
    isBehind: () => store.isBehind(days),
    onBehindChanged: (isBehind) =>
      log.info(isBehind ? 'the archive is behind: it works without pauses' : 'the archive has caught up'),
  });
  stopWithProcess(pace);
  try {
    await runArchive({
      store,
      url,
      pathStyle: config.archivePathStyle,
      runner: newId(Date.now()),
      silentMs: config.taskTakeoverMs,
      restoreKeepMs: config.restoreDays * DAY_MS,
      pace,
      onExported: (exported) => {
        log.info(exported, 'archived a file');
        process.send?.({ rows: exported.rows, bytes: exported.bytes });
      },
      onVerified: (verified) => log.info(verified, 'archived a partition'),
      onRewritten: ({ kind, day, part }) =>
        log.info({ kind, day, part }, 'removed expunged data from the archive'),
    });
    return pace.isStopped ? 1 : 0;
  } catch (error) {
    log.error({ err: error }, 'the archive failed');
    return 1;
  } finally {
    await database.close();
  }
}

const isStartedByServer = (): boolean => process.send !== undefined;

const STOP_WITHIN_MS = 3_000;

/** The run ends after its present step. If that takes too long, the process exits within the step, which is safe too. */
function stopWithProcess(pace: Pick<ExportPace, 'stop'>): void {
  const stop = (): void => {
    pace.stop();
    setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop).once('disconnect', stop);
}

/** Lowers the priority of this process, because deliveries matter more. */
function lowerPriority(): void {
  try {
    setPriority(19);
  } catch {
    // This system does not support priorities.
  }
}
