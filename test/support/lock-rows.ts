import pg from 'pg';
import { onTestFinished } from 'vitest';

/** Runs a statement in a transaction, and keeps its locks until the returned function is called or the test ends. */
export async function lockRows(
  database: { readonly url: string },
  sql: string,
  values: unknown[] = [],
): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  let isOpen = true;
  const unlock = async (): Promise<void> => {
    if (isOpen) await client.end();
    isOpen = false;
  };
  onTestFinished(unlock);
  await client.query('begin');
  await client.query(sql, values);
  return unlock;
}
