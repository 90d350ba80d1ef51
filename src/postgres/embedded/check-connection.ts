import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { DATABASE, USER } from './create-cluster.ts';
import { EmbeddedPostgresError, errorCode, OWN_SERVER_HINT } from './errors.ts';
import type { Home } from './home.ts';

/**
 * The host is the percent-encoded directory of the socket: libpq accepts it, and unlike an empty host it is a valid
 * URL.
 */
export async function buildConnectionString(home: Home, socketDirectory: string): Promise<string> {
  const password = (await readFile(home.password, 'utf8')).trim();
  // sslmode, because a PGSSLMODE in the environment would otherwise ask for TLS on the local socket.
  return `postgresql://${USER}:${encodeURIComponent(password)}@${encodeURIComponent(socketDirectory)}:5432/${DATABASE}?sslmode=disable`;
}

const DAMAGE: Record<string, string> = {
  '28P01': 'its password file does not hold the password of this database',
  '28000': 'the role "posthorn" is missing or may not log in',
  '3D000': 'it has no database "posthorn"',
};

/**
 * Logs in once, to check that the server is ready. Errors of an old data directory appear here rather than in a pool.
 */
export async function checkConnection(home: Home, connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 30_000 });
  client.on('error', () => {}); // ignore a connection that is lost while it closes
  try {
    await client.connect();
  } catch (error) {
    const damage = DAMAGE[errorCode(error) ?? ''];
    if (!damage) {
      throw new EmbeddedPostgresError(
        'start_failed',
        `PostgreSQL has started, but the login failed: ${error instanceof Error ? error.message : error}. Its log is ${home.log}`,
        OWN_SERVER_HINT,
        { cause: error },
      );
    }
    throw new EmbeddedPostgresError(
      'damaged',
      `The database in ${home.cluster} cannot be used: ${damage}.`,
      `Restore the directory ${home.dir} from a backup as a whole; or move it away to begin with an empty database.`,
      { cause: error },
    );
  } finally {
    await client.end().catch(() => {});
  }
}
