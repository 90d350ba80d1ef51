/** Which connections lead through a pooler, and whether Posthorn can work with it. See docs/operate/poolers.md. */
import pg from 'pg';

/** `session`: each client keeps its server connection, as if there were no pooler. */
export type Pooling = 'none' | 'session' | 'transaction';

const CONNECT_MS = 10_000;
/** Check several times: with several free server connections the pooler may return the same one by chance. */
const ROUNDS = 4;

export class PoolerError extends Error {
  override readonly name = 'PoolerError';
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

/** PostgreSQL cannot be reached through POSTHORN_DIRECT_DATABASE_URL. The cause is the error of the connection. */
export class DirectConnectionError extends Error {
  override readonly name = 'DirectConnectionError';
  readonly url: string;

  constructor(url: string, cause: unknown) {
    super('There is no connection through POSTHORN_DIRECT_DATABASE_URL.', { cause });
    this.url = url;
  }
}

export interface DatabaseRoute {
  readonly databaseUrl: string;
  readonly directDatabaseUrl: string | null;
}

/**
 * Throws a PoolerError that names the setting if leases, locks or LISTEN would not hold on these connections, and the
 * error of a connection that fails.
 */
export async function checkRoute({ databaseUrl, directDatabaseUrl }: DatabaseRoute): Promise<void> {
  if (directDatabaseUrl === null) {
    if ((await detectPooling(databaseUrl)) === 'transaction')
      throw new PoolerError(
        'DATABASE_URL leads through a pooler that shares connections by transaction: leases, locks and LISTEN do not hold there.',
        'Set POSTHORN_DIRECT_DATABASE_URL to an address of PostgreSQL itself (DATABASE_URL may stay), or use the pooler in session mode.',
      );
    return;
  }
  const pooling = await detectPooling(directDatabaseUrl).catch((error) => {
    throw new DirectConnectionError(directDatabaseUrl, error);
  });
  if (pooling === 'transaction')
    throw new PoolerError(
      'POSTHORN_DIRECT_DATABASE_URL leads through a pooler that shares connections by transaction.',
      'Set it to an address of PostgreSQL itself.',
    );
  const [pooled, direct] = await Promise.all([databaseUrl, directDatabaseUrl].map(identify));
  if (pooled !== direct)
    throw new PoolerError(
      `DATABASE_URL and POSTHORN_DIRECT_DATABASE_URL lead to two different databases (${pooled}; ${direct}).`,
      'Set both to addresses of the same database on the same server.',
    );
}

export async function detectPooling(connectionString: string): Promise<Pooling> {
  return withClient(connectionString, async (one) => {
    const firstPid = await backendPid(one);
    // A pooler sends a key of its own instead of the backend's, because it handles cancel requests itself.
    if ((one as unknown as { processID: number | null }).processID === firstPid) return 'none';
    return withClient(connectionString, async (other) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        if (await sharesBackend(one, other)) return 'transaction';
      }
      return 'session';
    });
  });
}

/**
 * True if `other` gets the server connection of `one` while both are connected, or `one` gets a different one than
 * before.
 */
async function sharesBackend(one: pg.Client, other: pg.Client): Promise<boolean> {
  const before = await backendPid(one);
  try {
    await other.query('begin');
    if ((await backendPid(other)) === before) return true;
    return (await backendPid(one)) !== before;
  } catch (error) {
    // Statement pooling rejects every transaction.
    if ('severity' in (error as object)) return true;
    throw error;
  } finally {
    await other.query('rollback').catch(() => {});
  }
}

async function backendPid(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]!.pid;
}

/** Returns the same text for two connections to the same database of the same running server. */
function identify(connectionString: string): Promise<string> {
  return withClient(connectionString, async (client) => {
    const { rows } = await client.query<{ identity: string }>(
      `select format('%s, oid %s, server started %s', datname, oid, pg_postmaster_start_time() at time zone 'UTC') as identity
         from pg_database where datname = current_database()`,
    );
    return rows[0]!.identity;
  });
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
    application_name: 'posthorn check',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
