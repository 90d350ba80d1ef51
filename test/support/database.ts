/** A separate database for each test file: a clone of the migrated template, dropped afterwards. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export const TEMPLATE = 'posthorn_template';

export interface TestDatabase {
  readonly url: string;
  query<T extends pg.QueryResultRow = pg.QueryResultRow>(text: string, values?: unknown[]): Promise<T[]>;
  drop(): Promise<void>;
}

/** `empty`: without a schema, for tests of the migrations or on another server. */
export async function createTestDatabase({
  empty = false,
  serverUrl = inject('postgresUrl'),
} = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await onServer(serverUrl, `create database ${name} template ${empty ? 'template0' : TEMPLATE}`);
  const url = databaseUrl(serverUrl, name);
  const pool = new pg.Pool({ connectionString: url, max: 2, application_name: 'test' });
  pool.on('error', () => {});
  let dropped: Promise<void> | undefined;
  const drop = async () => {
    await pool.end();
    await onServer(serverUrl, `drop database ${name} with (force)`);
  };
  return {
    url,
    query: async (text, values) => (await pool.query(text, values)).rows,
    drop() {
      dropped ??= drop();
      return dropped;
    },
  };
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The URL of another database on the same server. */
export function databaseUrl(serverUrl: string, name: string): string {
  return serverUrl.replace(/\/[^/?]+(\?|$)/, `/${name}$1`);
}
