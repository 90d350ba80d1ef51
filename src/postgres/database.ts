import pg from 'pg';
import { TransactionPool } from './transaction-pool.ts';

/**
 * Connection pools by purpose. The engine has few statements. They are prepared and use one fixed plan: planning each
 * time would cost more than running them. A plan that is made while the queue is empty must not become a sequential scan
 * of a million rows, so those sessions force the use of indexes.
 */
export const purposes = [
  'ingest',
  'settle',
  'dispatch',
  'control',
  'listen',
  'notify',
  'outbox',
  'lookup',
  'api',
  'upkeep',
] as const;
export type Purpose = (typeof purposes)[number];

export type Pool = pg.Pool;
export type Client = pg.PoolClient;
/** A pool, or the client of a transaction. */
export type Queryable = Pick<pg.ClientBase, 'query'>;
export type Row = Record<string, unknown>;

const FIXED_PLAN = ['set plan_cache_mode = force_generic_plan'];
const BY_INDEX = ['set enable_seqscan = off', 'set enable_bitmapscan = off', 'set enable_mergejoin = off'];
const BY_LOOKUP = [...BY_INDEX, 'set enable_hashjoin = off'];
/** For the settle statement, which looks up its batch by index and joins it by hashing. */
const BY_HASH = [...BY_INDEX, 'set enable_nestloop = off'];
/**
 * A process that is paused inside a transaction must not keep its locks. Shorter than the `lock_timeout` of the API, so
 * that a statement that waits for such a lock gets it in time.
 */
const END_IDLE_TRANSACTIONS = "set idle_in_transaction_session_timeout = '4s'";
const ALWAYS = [
  END_IDLE_TRANSACTIONS,
  // The default of a role or database could switch it off, and a 202 would no longer mean that the event is durable.
  'set synchronous_commit = on',
  'set jit = off',
  "set timezone = 'UTC'",
];

const MESSAGES = [END_IDLE_TRANSACTIONS, 'set jit = off', "set lock_timeout = '1s'"];

const SESSION: Record<Purpose, readonly string[]> = {
  // lock_timeout: an idempotency key that another transaction holds must not block all producers. It takes about ten
  // tries to find out which event of a batch waits for the lock.
  ingest: [...ALWAYS, ...FIXED_PLAN, "set lock_timeout = '300ms'", "set statement_timeout = '7s'"],
  // lock_timeout: results and starts share statements. One that waits for a lock delays the others for this time, once.
  settle: [
    ...ALWAYS,
    ...FIXED_PLAN,
    ...BY_HASH,
    "set lock_timeout = '500ms'",
    "set statement_timeout = '12s'",
  ],
  dispatch: [
    ...ALWAYS,
    ...FIXED_PLAN,
    ...BY_LOOKUP,
    "set lock_timeout = '500ms'",
    "set statement_timeout = '30s'",
  ],
  control: [...ALWAYS, "set statement_timeout = '5s'", "set lock_timeout = '2s'"],
  // LISTEN: writes nothing.
  listen: [...MESSAGES, "set statement_timeout = '5s'"],
  // A sweep finds the deliveries of a lost notification, and messages of live tails may be lost, so the commit need not
  // wait for the disk.
  notify: ['set synchronous_commit = off', ...MESSAGES, "set statement_timeout = '5s'"],
  // Plans are made while the outbox is empty and must be good for a backlog: with sequential scans, a batch out of
  // 100,000 rows took 26 s.
  outbox: [
    ...ALWAYS,
    ...FIXED_PLAN,
    'set enable_seqscan = off',
    'set enable_bitmapscan = off',
    "set lock_timeout = '300ms'",
    "set statement_timeout = '10s'",
  ],
  // API keys and endpoints: accepting needs them, and must not wait behind requests that read lists.
  lookup: [...ALWAYS, "set statement_timeout = '20s'", "set lock_timeout = '5s'"],
  api: [...ALWAYS, "set statement_timeout = '20s'", "set lock_timeout = '5s'"],
  upkeep: [...ALWAYS, "set statement_timeout = '20s'", "set lock_timeout = '5s'"],
};

/**
 * Purposes that need a session and therefore never use a pooler: LISTEN, session locks, commits that do not wait for
 * the disk (the setting must not apply to other clients), and transactions that stay open while other connections do
 * the work.
 */
const NEEDS_SESSION: ReadonlySet<Purpose> = new Set(['control', 'listen', 'notify', 'upkeep']);

/**
 * Client-side timeouts. They are not shorter than `statement_timeout`, so they end only queries on dead connections.
 */
const QUERY_TIMEOUT_MS: Record<Purpose, number> = {
  ingest: 8_000,
  settle: 15_000,
  dispatch: 35_000,
  control: 5_000,
  listen: 5_000,
  notify: 10_000,
  outbox: 12_000,
  lookup: 25_000,
  api: 40_000,
  upkeep: 40_000,
};

export interface Database {
  pool(purpose: Purpose): Pool;
  readonly connectionString: string;
  close(): Promise<void>;
}

/** Connections of the dispatch stage: it loads lanes, loads payloads and records starts at the same time. */
export const DISPATCH_CONNECTIONS = 3;

export interface DatabaseOptions {
  readonly connectionString: string;
  /**
   * Leads to PostgreSQL without a pooler. If it is set, `connectionString` may lead through a pooler in transaction
   * mode.
   */
  readonly directConnectionString?: string | null;
  /** What the process does. A process of one role needs fewer connections. Default: everything. */
  readonly role?: ProcessRole;
  readonly apiConnections: number;
  readonly dispatchConnections: number;
  readonly onIdleError: (purpose: Purpose, error: Error) => void;
}

type ProcessRole = 'api' | 'worker' | 'all';
type Sizes = Pick<DatabaseOptions, 'role' | 'apiConnections' | 'dispatchConnections'>;

/** A worker answers no API requests. Its background work uses these connections, one of which holds the lock of upkeep. */
const WORKER_API_CONNECTIONS = 4;

const poolSizes = ({
  role = 'all',
  apiConnections,
  dispatchConnections,
}: Sizes): Record<Purpose, number> => ({
  // One connection each for shared batches, the bulk path and the blocked path. A worker accepts no requests.
  ingest: role === 'worker' ? 1 : 3,
  settle: role === 'api' ? 0 : 1,
  // An API process owns no lanes. It reads payloads for large fan-outs.
  dispatch: role === 'api' ? 1 : dispatchConnections,
  control: role === 'api' ? 0 : 1,
  listen: 1,
  notify: 1,
  outbox: 1,
  lookup: 2,
  api: role === 'worker' ? Math.min(apiConnections, WORKER_API_CONNECTIONS) : apiConnections,
  // One connection holds the lock, the other does the work.
  upkeep: 2,
});

/** The most connections that a process opens: `all` without a pooler, otherwise `direct` and `pooled`. */
export function connectionsPerProcess(sizes: Sizes): { all: number; direct: number; pooled: number } {
  const all = Object.entries(poolSizes(sizes)) as [Purpose, number][];
  const sum = (some: [Purpose, number][]): number => some.reduce((total, [, size]) => total + size, 0);
  return {
    // Without a pooler upkeep uses the pool of the API.
    all: sum(all.filter(([purpose]) => purpose !== 'upkeep')),
    direct: sum(all.filter(([purpose]) => NEEDS_SESSION.has(purpose))),
    pooled: sum(all.filter(([purpose]) => !NEEDS_SESSION.has(purpose))),
  };
}

export function openDatabase(options: DatabaseOptions): Database {
  const pools = new Map<Purpose, Pool>();
  const sizes = poolSizes(options);
  return {
    connectionString: options.connectionString,
    pool(wanted) {
      const purpose = wanted === 'upkeep' && options.directConnectionString == null ? 'api' : wanted;
      let pool = pools.get(purpose);
      if (pool === undefined) {
        // 0 would be the default size of a pool. A pool that is not used opens no connection.
        pool = openPool(options, purpose, Math.max(1, sizes[purpose]));
        pools.set(purpose, pool);
      }
      return pool;
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.end()));
      pools.clear();
    },
  };
}

function openPool(options: DatabaseOptions, purpose: Purpose, max: number): Pool {
  const { connectionString, directConnectionString = null } = options;
  const isPooled = directConnectionString !== null && !NEEDS_SESSION.has(purpose);
  const settings: pg.PoolConfig = {
    connectionString: isPooled ? connectionString : (directConnectionString ?? connectionString),
    max,
    application_name: `posthorn ${purpose}`,
    idleTimeoutMillis: purpose === 'api' || purpose === 'upkeep' ? 30_000 : 0,
    connectionTimeoutMillis: 10_000,
    // Without it, a query on a silently dropped connection waits for minutes until TCP gives up.
    query_timeout: QUERY_TIMEOUT_MS[purpose],
    keepAlive: true,
    allowExitOnIdle: true,
  };
  const pool = isPooled
    ? new TransactionPool(settings, SESSION[purpose])
    : new pg.Pool({
        ...settings,
        // The pool awaits this before it hands out the connection, so no statement runs without these settings.
        onConnect: async (client) => {
          await client.query(SESSION[purpose].join(';'));
        },
      });
  // Without a listener a connection that dies while idle would end the process.
  pool.on('error', (error) => options.onIdleError(purpose, error));
  return pool;
}

/** Our own statements hold their locks for less than 10 ms. A longer wait would delay the statements that queue behind this one. */
const SHORT_TIMEOUTS = "set local lock_timeout = '10ms'; set local statement_timeout = '3s'";

/** Runs `work` in a transaction that fails instead of waiting for a lock that another transaction keeps. */
export function inBriefTransaction<T>(pool: Pool, work: (client: Client) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (client) => {
    await client.query(SHORT_TIMEOUTS);
    return work(client);
  });
}

const errorsBeforeCommit = new WeakSet<Error>();

/** True if `inTransaction` threw this error before it sent the commit: nothing was written. */
export const failedBeforeCommit = (error: Error): boolean => errorsBeforeCommit.has(error);

/** Runs `work` in a transaction. */
export async function inTransaction<T>(pool: Pool, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let connectionError: Error | undefined;
  let isCommitting = false;
  // A lost connection also emits an error event, which would end the process without a listener.
  const onError = (error: Error): void => {
    connectionError = error;
  };
  client.on('error', onError);
  try {
    await client.query(pool instanceof TransactionPool ? pool.begin : 'begin');
    const result = await work(client);
    isCommitting = true;
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      connectionError = failure;
    });
    if (!isCommitting && error instanceof Error) errorsBeforeCommit.add(error);
    throw error;
  } finally {
    client.off('error', onError);
    client.release(connectionError);
  }
}
