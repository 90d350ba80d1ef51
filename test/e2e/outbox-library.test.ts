/** OUT-2: `publish(event, { tx })` with the transaction of each library. */

import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js';
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OutboxEvent, publish, type Transaction } from '../../src/outbox/publish.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
let sql: postgres.Sql;
let kysely: Kysely<unknown>;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.query('create table orders (id int primary key)');
  pool = new pg.Pool({ connectionString: database.url, max: 4 });
  pool.on('error', () => {});
  sql = openPostgresJs(database.url);
  kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
});
afterAll(async () => {
  await sql.end();
  await pool.end();
  await database.drop();
});

/** This library does not support a socket in a URL. */
function openPostgresJs(url: string): postgres.Sql {
  const { hostname, port, username, password, pathname } = new URL(url);
  return postgres({
    host: decodeURIComponent(hostname),
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
    max: 2,
  });
}

class RolledBack extends Error {}

/** What a library's handle has to do: write an order, let `work` publish, and undo both if it fails. */
type Run = (order: number, work: (tx: Transaction) => Promise<string>) => Promise<string>;

async function withPg(client: pg.PoolClient, order: number, work: (tx: Transaction) => Promise<string>) {
  try {
    await client.query('begin');
    await client.query('insert into orders values ($1)', [order]);
    const id = await work(client);
    await client.query('commit');
    return id;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

/**
 * The handle of Prisma, as far as we use it. Prisma itself needs a generated client and 300 MB of packages; that real
 * Prisma 7 with its pg adapter runs this was tried by hand.
 */
class PrismaHandle {
  readonly #client: pg.PoolClient;
  constructor(client: pg.PoolClient) {
    this.#client = client;
  }
  async $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T> {
    return (await this.#client.query(query, values)).rows as T;
  }
}

const libraries: Record<string, Run> = {
  pg: async (order, work) => withPg(await pool.connect(), order, work),
  'postgres.js': async (order, work) => {
    const id = await sql.begin(async (tx) => {
      await tx`insert into orders values (${order})`;
      return work(tx);
    });
    return id as string;
  },
  'Drizzle on pg': (order, work) =>
    drizzle(pool).transaction(async (tx) => {
      await tx.execute(drizzleSql`insert into orders values (${order})`);
      return work(tx);
    }),
  'Drizzle on postgres.js': (order, work) =>
    drizzleOnPostgresJs(sql).transaction(async (tx) => {
      await tx.execute(drizzleSql`insert into orders values (${order})`);
      return work(tx);
    }),
  Kysely: (order, work) =>
    kysely.transaction().execute(async (trx) => {
      await kyselySql`insert into orders values (${order})`.execute(trx);
      return work(trx);
    }),
  'Prisma (its handle)': async (order, work) => {
    const client = await pool.connect();
    return withPg(client, order, () => work(new PrismaHandle(client)));
  },
};

const everything: OutboxEvent = {
  type: 'order.created',
  json: '{ "b":1.10, "a":12345678901234567890,"\\u00e9":"é \\u0000 \'$1\' \\\\" }',
  tenant: 'acme',
  channels: ['a"b', 'c,d', 'e\\f', '{}', 'é'],
  deliverAt: new Date('2099-01-31T12:00:00.125Z'),
  headers: { 'x-shop': 'so"uth' },
  schemaVersion: '2',
};

interface Row {
  id: string;
  tenant: string;
  type: string;
  data: string;
  idempotency_key: string | null;
  options: unknown;
}
const rowOf = async (id: string): Promise<Row | undefined> => {
  const rows = await database.query<Row>(
    `select posthorn.public_id('evt', id) as id, tenant, type, convert_from(data, 'UTF8') as data, idempotency_key, options
       from posthorn.outbox where posthorn.public_id('evt', id) = $1`,
    [id],
  );
  return rows[0];
};
const hasOrder = async (order: number): Promise<boolean> =>
  (await database.query('select from orders where id = $1', [order])).length === 1;

let orders = 0;
describe.each(Object.entries(libraries))('OUT-2: %s', (name, run) => {
  test('a commit publishes the event with all its fields', async () => {
    orders += 1;
    const id = await run(orders, (tx) =>
      publish({ ...everything, idempotencyKey: `key of ${name}` }, { tx }),
    );
    expect(await hasOrder(orders)).toBe(true);
    expect(await rowOf(id)).toEqual({
      id,
      tenant: 'acme',
      type: 'order.created',
      data: everything.json,
      idempotency_key: `key of ${name}`,
      options: {
        channels: everything.channels,
        deliver_at: Date.parse('2099-01-31T12:00:00.125Z'),
        headers: everything.headers,
        schema_version: '2',
      },
    });
  });

  test('an event may have only a type and data', async () => {
    orders += 1;
    const id = await run(orders, (tx) => publish({ type: 'a.b', data: { n: [1, null, 'é'] } }, { tx }));
    expect(await rowOf(id)).toEqual({
      id,
      tenant: 'default',
      type: 'a.b',
      data: '{"n":[1,null,"é"]}',
      idempotency_key: null,
      options: null,
    });
  });

  test('a rollback discards the order and the event', async () => {
    orders += 1;
    let id = '';
    const failing = run(orders, async (tx) => {
      id = await publish({ type: 'a.b', data: 1 }, { tx });
      throw new RolledBack();
    });
    await expect(failing).rejects.toThrow(RolledBack);
    expect(id).toMatch(/^evt_/);
    expect(await rowOf(id)).toBeUndefined();
    expect(await hasOrder(orders)).toBe(false);
  });

  test('an invalid event fails the transaction with the reason', async () => {
    orders += 1;
    const failing = run(orders, (tx) => publish({ type: 'not a type', data: 1 }, { tx }));
    const error = await failing.then(
      () => expect.fail('it was published'),
      (caught: Error) => caught,
    );
    // Drizzle wraps the error.
    expect(`${error.message} ${error.cause}`).toContain("type 'not a type' is not an event type");
    expect(await hasOrder(orders)).toBe(false);
  });
});

test('OUT-2: publishing outside a transaction and publishing invalid events are refused', async () => {
  const event = { type: 'a.b', data: 1 };
  const client = await pool.connect();
  const refused: [handle: unknown, message: RegExp][] = [
    [pool, /a pg Pool, and not in a transaction/],
    [client, /a pg client without BEGIN/],
    [sql, /the sql of postgres itself/],
    [drizzle(pool), /the Drizzle database itself/],
    [kysely, /the Kysely instance itself/],
    [{ $queryRawUnsafe: () => [], $connect: () => {} }, /the Prisma client itself/],
    [{}, /tx must be a transaction of/],
    [undefined, /tx must be a transaction of/],
  ];
  for (const [handle, message] of refused)
    await expect(publish(event, { tx: handle as Transaction })).rejects.toThrow(message);
  await client.query('begin');
  const nothing = { type: 'a.b', data: undefined };
  await expect(publish(nothing, { tx: client })).rejects.toThrow('data is required');
  const both = { type: 'a.b', data: 1, json: '1' } as unknown as OutboxEvent;
  await expect(publish(both, { tx: client })).rejects.toThrow('not both');
  await client.query('rollback');
  client.release();
});
