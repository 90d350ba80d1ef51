import pg from 'pg';
import type { Pool } from './database.ts';

/** Connections to the database that a relay reads from: somebody else's, so few and polite. */
export function openSourcePool(options: {
  readonly connectionString: string;
  readonly onIdleError: (error: Error) => void;
}): Pool {
  const setup = [
    // A row that was removed here must not come back after a crash of that server.
    'set synchronous_commit = on',
    "set datestyle = 'ISO'",
    "set timezone = 'UTC'",
    "set lock_timeout = '5s'",
    "set statement_timeout = '30s'",
    // While Posthorn's own database is away the rows are given back, and not held for ever by a relay that hangs.
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
  // Without a listener a connection that dies while idle would end the process.
  pool.on('error', options.onIdleError);
  return pool;
}

/** Where a connection string points to, as the driver reads it. */
export function addressOf(connectionString: string): { host: string; port: number; database: string } {
  const { host, port, database } = new pg.Client({ connectionString });
  return { host, port, database: database ?? 'postgres' };
}

/** A name in SQL text, where no parameter can stand. `schema.table` becomes two of them. */
export function quoteName(name: string): string {
  return name
    .split('.')
    .map((part) => pg.escapeIdentifier(part))
    .join('.');
}

export const quoteText = (text: string): string => pg.escapeLiteral(text);

const TEXT_ARRAY = 1009 as Parameters<typeof pg.types.getTypeParser>[0];
const readTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (literal: string) => (string | null)[];

/** `{a,"b c"}`, as PostgreSQL writes an array of texts. */
export function parseTextArray(literal: string): (string | null)[] {
  return readTextArray(literal);
}
