/**
 * Connections through a pooler that gives a server connection to each transaction (PgBouncer's `pool_mode =
 * transaction`). Session state does not last there: a setting of one client would apply to another. So every statement
 * runs in a transaction that begins with its settings, and statements have no names (a prepared statement would be
 * missing in the next session).
 *
 * This costs two more round trips per statement. On a direct connection the settings belong to the session instead.
 */
import pg from 'pg';

type Query = (...args: unknown[]) => Promise<pg.QueryResult>;

export class TransactionPool extends pg.Pool {
  /** Begins a transaction and gives it its settings, in one round trip. */
  readonly begin: string;

  constructor(config: pg.PoolConfig, settings: readonly string[]) {
    super({
      ...config,
      // The pool awaits this before it hands out the connection.
      onConnect: (client) => removeNames(client),
    });
    this.begin = ['begin', ...settings.map((setting) => setting.replace(/^set /, 'set local '))].join(';');
    Object.defineProperty(this, 'query', { value: (...args: unknown[]) => this.#runAlone(args) });
  }

  async #runAlone(args: unknown[]): Promise<pg.QueryResult> {
    const client = await this.connect();
    let broken: Error | undefined;
    // A lost connection also emits an error event, which would end the process without a listener.
    const onError = (error: Error): void => {
      broken = error;
    };
    client.on('error', onError);
    try {
      await client.query(this.begin);
      const result = await (client.query as unknown as Query).apply(client, args);
      await client.query('commit');
      return result;
    } catch (error) {
      broken ??= await rollBack(client, error as Error);
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }
}

/** Rolls back. Returns undefined if the connection can be used again, otherwise the reason. */
async function rollBack(client: pg.PoolClient, error: Error): Promise<Error | undefined> {
  // Only errors of the server have a severity. After any other the connection is in an unknown state.
  if (!('severity' in error)) return error;
  try {
    await client.query('rollback');
    return undefined;
  } catch (failure) {
    return failure as Error;
  }
}

function removeNames(client: pg.ClientBase): void {
  const query = client.query.bind(client) as unknown as Query;
  const withoutName: Query = (statement, ...rest) =>
    query(isNamed(statement) ? { ...statement, name: undefined } : statement, ...rest);
  Object.defineProperty(client, 'query', { value: withoutName });
}

const isNamed = (statement: unknown): statement is { name: string } =>
  typeof statement === 'object' && statement !== null && 'name' in statement && 'text' in statement;
