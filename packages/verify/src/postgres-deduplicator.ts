/**
 * Receipts in PostgreSQL, for any number of processes. One row per (subscriber, event):
 *
 *   claimed:  handled_at is null, claimed_until in the future  → others get in_progress
 *   lapsed:   handled_at is null, claimed_until in the past    → its process died; whoever comes next takes it
 *   handled:  handled_at set                                   → duplicate
 *
 * Every step is one statement, so a pool will do: nothing is held while the handler runs.
 */
import { type Deduplicator, handleOnce, type ReceiptKey, type ReceiptStore } from './deduplicator.ts';

/** `pool.query` of `pg`, or anything like it. */
export type Query = (text: string, values: unknown[]) => Promise<{ rows: unknown[] } | unknown[]>;

export interface PostgresOptions {
  /** `(text, values) => pool.query(text, values)` */
  readonly query: Query;
  /** Default: `webhook_receipts`. May name a schema: `app.webhook_receipts`. */
  readonly table?: string;
  /** Longer than a handler ever takes: after that a claim counts as abandoned. Default: 60. */
  readonly claimSeconds?: number;
}

export interface PostgresDeduplicator extends Deduplicator {
  /** Makes the table if it is not there. Or put `schema` into your migrations. */
  createTable(): Promise<void>;
  readonly schema: string;
  /**
   * Inside your own transaction, with its `query`: true if the event is new. The receipt then commits or rolls back
   * with what you write beside it, so the effect happens exactly once. A concurrent duplicate waits for your commit.
   */
  recordIn(query: Query, key: ReceiptKey): Promise<boolean>;
  /** Forgets receipts older than that. Keep them for longer than the sender retries and you replay. Returns how many. */
  forget(olderThanSeconds: number): Promise<number>;
}

const IDENTIFIER = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/i;

export function postgresDeduplicator(options: PostgresOptions): PostgresDeduplicator {
  const { query, table = 'webhook_receipts', claimSeconds = 60 } = options;
  if (!IDENTIFIER.test(table)) throw new TypeError(`"${table}" is not the name of a table.`);
  if (!(claimSeconds > 0)) throw new TypeError('claimSeconds must be more than 0.');
  const schema = `create table if not exists ${table} (
  subscriber    text not null,
  event_id      text not null,
  token         uuid,
  claimed_until timestamptz,
  handled_at    timestamptz,
  primary key (subscriber, event_id)
)`;
  const rowsOf = async (run: Query, text: string, values: unknown[]): Promise<Record<string, unknown>[]> => {
    const answer = await run(text, values);
    return (Array.isArray(answer) ? answer : answer.rows) as Record<string, unknown>[];
  };

  const store: ReceiptStore = {
    async claim({ subscriber, eventId }, token) {
      const taken = await rowsOf(
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
      const handled = await rowsOf(
        query,
        `select true as handled from ${table} where subscriber = $1 and event_id = $2 and handled_at is not null`,
        [subscriber, eventId],
      );
      // No row at all: the other one has failed and let go just now. Its sender, and ours, will come again.
      return handled.length > 0 ? 'duplicate' : 'in_progress';
    },
    async settle({ subscriber, eventId }, token) {
      // Also if the claim has lapsed and another has it now: what has been handled must not be handled again. If it
      // is being handled a second time already, claimSeconds was too short.
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

  return {
    schema,
    async createTable() {
      await query(schema, []);
    },
    once: (key, handler) => handleOnce(store, key, handler),
    async recordIn(transactionQuery, { subscriber, eventId }) {
      const recorded = await rowsOf(
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
      const forgotten = await rowsOf(
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
