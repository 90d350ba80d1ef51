import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { DATABASE, USER } from './create-cluster.ts';
import { EmbeddedPostgresError, errorCode, OWN_SERVER_HINT } from './errors.ts';
import type { Home } from './home.ts';

/** The host is the socket's directory, percent-encoded: libpq's way, and a valid URL, unlike an empty host. */
export async function buildConnectionString(home: Home, socketDirectory: string): Promise<string> {
  const password = (await readFile(home.password, 'utf8')).trim();
  // sslmode, because a PGSSLMODE in the environment would otherwise ask for TLS on the local socket.
  return `postgresql://${USER}:${encodeURIComponent(password)}@${encodeURIComponent(socketDirectory)}:5432/${DATABASE}?sslmode=disable`;
}

const DAMAGE: Record<string, string> = {
  '28P01': 'its password file does not hold the password of this database',
  '28000': 'the role "posthorn" is missing or may not log in',
  '3D000': 'the database "posthorn" is missing in it',
};

/** The proof that it is ready is a login; and what is wrong with an old directory shows here rather than in a pool. */
export async function checkConnection(home: Home, connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 30_000 });
  client.on('error', () => {}); // a connection lost while it closes is no concern of ours
  try {
    await client.connect();
  } catch (error) {
    const damage = DAMAGE[errorCode(error) ?? ''];
    if (!damage) {
      throw new EmbeddedPostgresError(
        'start_failed',
        `PostgreSQL has started, but cannot be logged in to: ${error instanceof Error ? error.message : error}. Its log is ${home.log}`,
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
