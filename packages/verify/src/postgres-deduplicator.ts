/**
 * Keeps receipts in PostgreSQL, for any number of processes. One row per (subscriber, event):
 *
 *   claimed:  handled_at is null, claimed_until in the future  → other callers get in_progress
 *   expired:  handled_at is null, claimed_until in the past    → its process died; the next caller takes the claim
 *   handled:  handled_at is set                                → duplicate
 *
 * Every step is a single statement, so it works with a pool and holds no connection while the handler runs.
 */
import { type Deduplicator, handleOnce, type ReceiptKey, type ReceiptStore } from './deduplicator.ts';

/** `pool.query` of `pg`, or a function like it. */
export type Query = (text: string, values: unknown[]) => Promise<{ rows: unknown[] } | unknown[]>;

export interface PostgresOptions {
  /** `(text, values) => pool.query(text, values)` */
  readonly query: Query;
  /** Default: `webhook_receipts`. May include a schema: `app.webhook_receipts`. */
  readonly table?: string;
  /** When a claim expires. Must be longer than the handler ever takes. Default: 60. */
  readonly claimSeconds?: number;
}

export interface PostgresDeduplicator extends Deduplicator {
  /** Creates the table if it does not exist. */
  createTable(): Promise<void>;
  /** The SQL of `createTable`, for your migrations. */
  readonly schema: string;
  /**
   * Records the event in your transaction, through its `query`. Resolves to true if the event is new. The receipt commits
   * or rolls back with your changes, so that they happen exactly once. A concurrent duplicate waits for your commit.
   */
  recordIn(query: Query, key: ReceiptKey): Promise<boolean>;
  /** Deletes older receipts and resolves to their number. Keep receipts for longer than the sender retries or replays. */
  forget(olderThanSeconds: number): Promise<number>;
}

const IDENTIFIER = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i;

export function postgresDeduplicator(options: PostgresOptions): PostgresDeduplicator {
  const { query, table = 'webhook_receipts', claimSeconds = 60 } = options;
  if (!IDENTIFIER.test(table)) throw new TypeError(`table must be a table name, but is "${table}".`);
  if (!(claimSeconds > 0)) throw new TypeError('claimSeconds must be more than 0.');
  const schema = `create table if not exists ${table} (
  subscriber    text not null,
  event_id      text not null,
  token         uuid,
  claimed_until timestamptz,
  handled_at    timestamptz,
  primary key (subscriber, event_id)
)`;
  const store = createStore(query, table, claimSeconds);
  return {
    schema,
    async createTable() {
      await query(schema, []);
    },
    once: (key, handler) => handleOnce(store, key, handler),
    async recordIn(transactionQuery, { subscriber, eventId }) {
      const recorded = await queryRows(
        transactionQuery,
        `insert into ${table} as r (subscriber, event_id, handled_at) values ($1, $2, clock_timestamp())
         on conflict (subscriber, event_id) do update set handled_at = excluded.handled_at
          where r.handled_at is null
         returning true as recorded`,
        [subscriber, eventId],
      );
      return recorded.length > 0;
    },
    async forget(olderThanSeconds) {
      const forgotten = await queryRows(
        query,
        `delete from ${table} where handled_at < clock_timestamp() - make_interval(secs => $1::float8)
            or (handled_at is null and claimed_until < clock_timestamp() - make_interval(secs => $1::float8))
         returning true as forgotten`,
        [olderThanSeconds],
      );
      return forgotten.length;
    },
  };
}

async function queryRows(query: Query, text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
  const result = await query(text, values);
  return (Array.isArray(result) ? result : result.rows) as Record<string, unknown>[];
}

function createStore(query: Query, table: string, claimSeconds: number): ReceiptStore {
  return {
    async claim({ subscriber, eventId }, token) {
      const taken = await queryRows(
        query,
        `insert into ${table} as r (subscriber, event_id, token, claimed_until)
         values ($1, $2, $3::uuid, clock_timestamp() + make_interval(secs => $4::float8))
         on conflict (subscriber, event_id) do update
            set token = excluded.token, claimed_until = excluded.claimed_until
          where r.handled_at is null and r.claimed_until < clock_timestamp()
         returning true as taken`,
        [subscriber, eventId, token, claimSeconds],
      );
      if (taken.length > 0) return 'taken';
      const handled = await queryRows(
        query,
        `select true as handled from ${table} where subscriber = $1 and event_id = $2 and handled_at is not null`,
        [subscriber, eventId],
      );
      // If there is no row, the other handler failed just now. Both senders will retry.
      return handled.length > 0 ? 'duplicate' : 'in_progress';
    },
    async settle({ subscriber, eventId }, token) {
      // Also settles if the claim expired and another caller took it: the event was handled, so nobody should handle it
      // again. If the other handler is already running, claimSeconds is too short.
      await query(
        `insert into ${table} (subscriber, event_id, token, handled_at) values ($1, $2, $3::uuid, clock_timestamp())
         on conflict (subscriber, event_id) do update set token = excluded.token, handled_at = excluded.handled_at`,
        [subscriber, eventId, token],
      );
    },
    async release({ subscriber, eventId }, token) {
      await query(
        `delete from ${table} where subscriber = $1 and event_id = $2 and token = $3::uuid and handled_at is null`,
        [subscriber, eventId, token],
      );
    },
  };
}
