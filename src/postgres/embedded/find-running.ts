import { realpath } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { buildConnectionString } from './check-connection.ts';
import { exists, findHome } from './home.ts';

export type FoundPostgres =
  | { readonly state: 'absent' }
  | { readonly state: 'stopped'; readonly dir: string }
  | { readonly state: 'running'; readonly dir: string; readonly connectionString: string };

/**
 * Finds out whether this directory has an embedded database and whether its server runs. Creates and starts nothing.
 */
export async function findEmbeddedPostgres(
  dataDir: string,
  systemDir = '/var/lib/posthorn',
): Promise<FoundPostgres> {
  const found = await Promise.all(
    ['postgres', 'postgres.password', 'relocated'].map((name) => exists(path.join(dataDir, name))),
  );
  if (!found.includes(true)) return { state: 'absent' };
  const home = await findHome(dataDir, systemDir, () => {});
  if (!(await exists(home.cluster))) return { state: 'absent' };
  const socket = await realpath(home.socket).catch(() => null);
  if (socket === null) return { state: 'stopped', dir: home.dir };
  const connectionString = await buildConnectionString(home, socket);
  return (await canConnect(connectionString))
    ? { state: 'running', dir: home.dir, connectionString }
    : { state: 'stopped', dir: home.dir };
}

async function canConnect(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 3_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
