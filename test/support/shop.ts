/** A user's program: it has its own connection to Posthorn's database and publishes in its transactions. */
import pg from 'pg';

export interface Published {
  readonly type: string;
  readonly data: string;
  readonly tenant: string;
}

export class Shop {
  readonly #pool: pg.Pool;

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  static async open(url: string): Promise<Shop> {
    const pool = new pg.Pool({ connectionString: url, max: 8, application_name: 'shop' });
    pool.on('error', () => {});
    return new Shop(pool);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  /** Returns the only value of the only row. */
  async one(sql: string, values: unknown[] = [], client?: pg.PoolClient): Promise<string> {
    const { rows } = await (client ?? this.#pool).query<string[]>({ text: sql, values, rowMode: 'array' });
    return rows[0]![0]!;
  }

  publish(client: pg.PoolClient, { type, data, tenant }: Published): Promise<string> {
    return this.one('select posthorn.publish($1, $2, $3)', [type, data, tenant], client);
  }

  transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#run(work, 'commit');
  }

  rollback<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#run(work, 'rollback');
  }

  async #run<T>(work: (client: pg.PoolClient) => Promise<T>, end: 'commit' | 'rollback'): Promise<T> {
    const client = await this.#pool.connect();
    try {
      await client.query('begin');
      const result = await work(client);
      await client.query(end);
      return result;
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  }
}
