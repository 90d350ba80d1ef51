import pg from 'pg';
import type { Pool } from './database.ts';

/** Connections to the database that a relay reads from. The producer owns that database, so the relay opens few. */
export function openSourcePool(options: {
  readonly connectionString: string;
  readonly onIdleError: (error: Error) => void;
}): Pool {
  const setup = [
    // A row that the relay deletes must not reappear after a crash of that server.
    'set synchronous_commit = on',
    "set datestyle = 'ISO'",
    "set timezone = 'UTC'",
    "set lock_timeout = '5s'",
    "set statement_timeout = '30s'",
    // Releases row locks if the relay hangs, for example because Posthorn's database is unavailable.
    "set idle_in_transaction_session_timeout = '60s'",
  ].join(';');
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: 3,
    application_name: 'posthorn relay',
    connectionTimeoutMillis: 10_000,
    query_timeout: 40_000,
    keepAlive: true,
    allowExitOnIdle: true,
    onConnect: async (client) => {
      await client.query(setup);
    },
  });
  // Without a listener, an idle connection that breaks would end the process.
  pool.on('error', options.onIdleError);
  return pool;
}

/** The address in a connection string, as the driver parses it. */
export function databaseAddressOf(connectionString: string): {
  host: string;
  port: number;
  database: string;
} {
  const { host, port, database } = new pg.Client({ connectionString });
  return { host, port, database: database ?? 'postgres' };
}

/** Quotes a name for SQL text. `schema.table` becomes two quoted names. */
export function quoteName(name: string): string {
  return name
    .split('.')
    .map((part) => pg.escapeIdentifier(part))
    .join('.');
}

export const quoteText = (text: string): string => pg.escapeLiteral(text);

const TEXT_ARRAY = 1009 as Parameters<typeof pg.types.getTypeParser>[0];
const readTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (literal: string) => (string | null)[];

/** Parses PostgreSQL's text form of an array, `{a,"b c"}`. */
export function parseTextArray(literal: string): (string | null)[] {
  return readTextArray(literal);
}
