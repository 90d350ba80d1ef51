import type { Config } from '../config/index.ts';
import type { Log } from '../telemetry/log.ts';
import type { Running } from './run-until-stopped.ts';

/**
 * Returns the URL of the configured database, or starts an embedded one. Calls `onSpawned` while the embedded one
 * starts.
 */
export async function findDatabase(
  config: Config,
  log: Log,
  running: Running[],
  onSpawned: () => void = () => {},
): Promise<string> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const { startEmbeddedPostgres } = await import('../postgres/embedded/index.ts');
  const embedded = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    log: (line) => log.info({ part: 'embedded PostgreSQL' }, line),
    onSpawned,
  });
  running.push({ name: 'embedded PostgreSQL', stop: () => embedded.stop() });
  if (config.mode === 'serve') {
    log.warn(
      { dataDir: embedded.dataDir },
      'DATABASE_URL is not set: using an embedded PostgreSQL, with all data on the disk of this machine only',
    );
  }
  return embedded.connectionString;
}

/** Brings the schema up to date. Returns the names of the migrations that were applied. */
export async function migrateDatabase(connectionString: string, log: Log): Promise<string[]> {
  const [{ default: pg }, { migrate }] = await Promise.all([import('pg'), import('../postgres/migrate.ts')]);
  const pool = new pg.Pool({
    connectionString,
    max: 1,
    connectionTimeoutMillis: 10_000,
    application_name: 'posthorn migrate',
  });
  pool.on('error', (error) => log.warn({ err: error }, 'lost the connection to PostgreSQL'));
  try {
    const applied = await migrate(pool);
    if (applied.length > 0) log.info({ applied }, 'schema brought up to date');
    return applied;
  } finally {
    await pool.end();
  }
}
