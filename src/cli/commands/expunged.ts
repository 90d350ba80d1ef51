import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { ConfigError, loadConfig } from '../../config/index.ts';
import { formatTombstones, parseTombstones, type StoredTombstone } from '../../domain/tombstones.ts';
import type { Command } from '../command.ts';
import { print, printError } from '../print.ts';
import { UsageError } from '../usage-error.ts';

export const expunged: Command = {
  name: 'expunged',
  summary: 'export and import the list of what was expunged',
  usage: `posthorn expunged export > expunged.jsonl
       posthorn expunged import expunged.jsonl`,
  about: `Backups still contain what was expunged after them. Export the list regularly, and import it after you restored a backup,
before you start the servers: what is on the list is expunged again. The list has ids and times only, one JSON object per line.
Works on the database of DATABASE_URL. With an archive, servers keep the list there by themselves. docs/operate/backup.md explains
it.`,
  actions: ['export', 'import'],
  takesFile: true,
  async run(args) {
    const [, action, file] = args.positionals;
    if (action === 'import' ? file === undefined : action !== 'export' || file !== undefined)
      throw new UsageError(`Usage: ${expunged.usage}`);
    const config = loadConfig({ mode: 'serve', env: process.env, flags: args.flags });
    const connectionString = config.directDatabaseUrl ?? config.databaseUrl;
    if (connectionString === null)
      throw new ConfigError([
        {
          name: 'DATABASE_URL',
          message: 'DATABASE_URL is not set. Set it to the database with the tombstones.',
        },
      ]);
    return action === 'import' ? importFile(connectionString, file!) : exportAll(connectionString);
  },
};

async function exportAll(connectionString: string): Promise<number> {
  const { listTombstones } = await import('../../postgres/queries/tombstones.ts');
  const tombstones = await withPool(connectionString, (pool) => listTombstones(pool, null));
  process.stdout.write(formatTombstones(tombstones));
  return 0;
}

async function importFile(connectionString: string, file: string): Promise<number> {
  let tombstones: StoredTombstone[];
  try {
    tombstones = parseTombstones(file === '-' ? await text(process.stdin) : await readFile(file, 'utf8'));
  } catch (error) {
    printError(`${file} cannot be read: ${(error as Error).message}`);
    return 1;
  }
  const { mergeAndApply } = await import('../../postgres/queries/apply-tombstones.ts');
  const added = await withPool(connectionString, (pool) => mergeAndApply(pool, tombstones));
  print(
    `${added} of ${tombstones.length} were missing. Payloads are expunged; data of tenants is expunged when a server runs.`,
  );
  return 0;
}

async function withPool<T>(
  connectionString: string,
  work: (pool: import('../../postgres/database.ts').Pool) => Promise<T>,
): Promise<T> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({ connectionString, max: 1, application_name: 'posthorn expunged' });
  pool.on('error', () => {});
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
