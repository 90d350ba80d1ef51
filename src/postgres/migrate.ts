import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { readPackagedFolder } from '../config/index.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Client, inTransaction, type Pool } from './database.ts';
import { isOutage } from './failures.ts';

/** `server_version_num` of the oldest supported server, PostgreSQL 15. */
const OLDEST_SERVER = 150_000;
/**
 * Migrations of large tables take long, and so may another process that migrates first. (The driver takes 0 as its
 * default.)
 */
const NO_QUERY_TIMEOUT = { query_timeout: 2 ** 31 - 1 };

/**
 * A migration that waits for a table lock blocks all statements on that table that come after it. So it waits briefly, and
 * is repeated after a pause in which the others go ahead.
 */
const LOCK_TIMEOUT = '1s';
const LOCK_PAUSE_MS = 500;
const MAX_LOCK_WAIT_MS = 60_000;

export class SchemaError extends Error {
  override name = 'SchemaError';
}

/**
 * Migrations whose text was corrected after their release, with the same result: the checksum of the corrected text,
 * and the released one, which databases keep. Both texts count as the same migration.
 */
const CORRECTED: Readonly<Record<string, { readonly corrected: string; readonly released: string }>> = {
  // CREATE TABLE with STORAGE needs PostgreSQL 16.
  '0007_statistics.sql': {
    corrected: '1d55ed7529cf1cee1e9bd8930b63b1f83ca474fc5a784716f0db41605ab5ee8e',
    released: '8f858a68ad5ff89dd9082c1015a6236c128deb9476573575812149cae2a15b43',
  },
};

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export async function readMigrations(): Promise<Migration[]> {
  const files = (await readPackagedFolder('migrations')) ?? new Map<string, Buffer>();
  const names = [...files.keys()].filter((name) => name.endsWith('.sql')).sort();
  return names.map((name, index) => {
    const version = Number.parseInt(name, 10);
    if (version !== index + 1)
      throw new SchemaError(`Migration ${name} is out of sequence: expected number ${index + 1}.`);
    const sql = files.get(name)!.toString();
    return { version, name, sql, checksum: checksumOf(name, sql) };
  });
}

function checksumOf(name: string, sql: string): string {
  const checksum = createHash('sha256').update(sql).digest('hex');
  const correction = CORRECTED[name];
  return checksum === correction?.corrected ? correction.released : checksum;
}

/**
 * Brings the schema up to date, each migration in its own transaction, which releases its locks before the next one
 * begins. Returns the names of the migrations that were applied. Throws a SchemaError that names the migration that
 * failed; those before it stay applied.
 */
export async function migrate(pool: Pool, migrations?: readonly Migration[]): Promise<string[]> {
  const wanted = migrations ?? (await readMigrations());
  const applied: string[] = [];
  for (;;) {
    const name = await repeatWhileLocked(() => inTransaction(pool, (client) => applyNext(client, wanted)));
    if (name === null) return applied;
    applied.push(name);
  }
}

async function repeatWhileLocked<T>(work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isLocked = (error as { code?: unknown }).code === '55P03';
      if (!isLocked || performance.now() - startedAt > MAX_LOCK_WAIT_MS) throw error;
      await setTimeout(LOCK_PAUSE_MS);
    }
  }
}

/** Applies the first missing migration and returns its name. Returns null if none is missing. */
async function applyNext(client: Client, wanted: readonly Migration[]): Promise<string | null> {
  // The lock ends with the transaction, also when the process is killed.
  await client.query("set local lock_timeout = '60s'");
  await client.query("set local statement_timeout = '0'");
  await client.query({
    text: 'select pg_advisory_xact_lock($1)',
    values: [ADVISORY_LOCKS.migrations],
    ...NO_QUERY_TIMEOUT,
  });
  await checkServer(client);
  const applied = await listAppliedMigrations(client);
  checkAppliedMigrations(applied, wanted);
  const next = wanted[applied.length];
  if (next === undefined) return null;
  await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
  try {
    await client.query({ text: next.sql, ...NO_QUERY_TIMEOUT });
  } catch (error) {
    throw isOutage(error) ? error : failedMigration(next, applied.at(-1), error);
  }
  await client.query('insert into posthorn.schema_migrations (version, name, checksum) values ($1, $2, $3)', [
    next.version,
    next.name,
    next.checksum,
  ]);
  return next.name;
}

function failedMigration(
  { name, sql }: Migration,
  last: AppliedMigration | undefined,
  cause: unknown,
): SchemaError {
  const { message, code, position } = cause as { message: string; code?: string; position?: string };
  const line = position === undefined ? '' : `, line ${sql.slice(0, Number(position)).split('\n').length}`;
  const advice =
    code === '42501'
      ? 'Run `posthorn migrate` as the role that owns the schema.'
      : 'Nothing of it was applied: remove the cause, then run `posthorn migrate` again.';
  return new SchemaError(
    `Migration ${name} failed: ${message} (SQLSTATE ${code ?? 'unknown'}${line}). ` +
      `The schema stays at ${last === undefined ? 'none' : `version ${last.version} (${last.name})`}.\n${advice}`,
    { cause },
  );
}

interface AppliedMigration {
  version: number;
  name: string;
  checksum: string;
}

async function checkServer(client: Client): Promise<void> {
  const { rows } = await client.query<{ number: number; version: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as version",
  );
  const server = rows[0]!;
  if (server.number < OLDEST_SERVER) {
    throw new SchemaError(`PostgreSQL ${server.version} is too old: Posthorn needs 15 or later.`);
  }
}

async function listAppliedMigrations(client: Client): Promise<AppliedMigration[]> {
  const { rows: existing } = await client.query("select to_regclass('posthorn.schema_migrations') as found");
  if (existing[0]!.found === null) {
    await createSchema(client);
    await client.query(`
      create table posthorn.schema_migrations (
        version int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now()
      )`);
  }
  const { rows } = await client.query<AppliedMigration>(
    'select version, name, checksum from posthorn.schema_migrations order by version',
  );
  return rows;
}

/** Not CREATE SCHEMA IF NOT EXISTS: that needs CREATE on the database although the schema exists. */
async function createSchema(client: Client): Promise<void> {
  const { rows } = await client.query("select to_regnamespace('posthorn') as found");
  if (rows[0]!.found === null) await client.query('create schema posthorn');
}

function checkAppliedMigrations(applied: readonly AppliedMigration[], wanted: readonly Migration[]): void {
  const newest = applied.at(-1);
  if (newest !== undefined && newest.version > wanted.length) {
    throw new SchemaError(
      `The database has schema version ${newest.version} (${newest.name}), this Posthorn knows only ${wanted.length}. ` +
        'Run the newer Posthorn that made it; going back is not supported.',
    );
  }
  for (const [index, row] of applied.entries()) {
    if (wanted[index]!.checksum !== row.checksum) {
      throw new SchemaError(
        `Migration ${row.name} differs from the one that was applied to this database. Reinstall Posthorn: its migration files must not be changed.`,
      );
    }
  }
}
