/**
 * Runs a statement in the transaction of any supported library. Recognizes the library by the methods of the handle, and
 * rejects a handle that is not in a transaction: passing `db` instead of `tx` is an easy mistake, and the event would be
 * published even if the caller's work is rolled back.
 */
type Parameters = readonly (string | null)[];

/** `pg`: a Client or PoolClient after BEGIN. */
export interface PgClient {
  query(text: string, values: (string | null)[]): Promise<{ rows: unknown[] }>;
  getTransactionStatus?(): string | null;
}

/** `postgres`: the argument of the function that you pass to `sql.begin`. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters: (string | null)[]): PromiseLike<readonly unknown[]>;
  savepoint: unknown;
}

/** Drizzle on PostgreSQL, with any driver: the argument of the function that you pass to `db.transaction`. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  rollback(): never;
}

/** Kysely on PostgreSQL: the argument of the function that you pass to `db.transaction().execute`. */
export interface KyselyTransaction {
  executeQuery(query: never): Promise<{ rows: unknown[] }>;
  readonly isTransaction: boolean;
}

/** Prisma on PostgreSQL: the `tx` of `prisma.$transaction(async (tx) => …)`. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: (string | null)[]): PromiseLike<unknown>;
}

export type Transaction =
  | PgClient
  | PostgresJsTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | PrismaTransaction;

/** Runs one statement and returns its rows. */
export async function runOn(tx: Transaction, sql: string, values: Parameters): Promise<readonly unknown[]> {
  const hasMethod = (name: string): boolean =>
    typeof (tx as unknown as Record<string, unknown>)?.[name] === 'function';
  if (hasMethod('$queryRawUnsafe'))
    return viaPrisma(tx as PrismaTransaction, hasMethod('$connect'), sql, values);
  if (hasMethod('executeQuery')) return viaKysely(tx as KyselyTransaction, sql, values);
  if (hasMethod('execute')) return viaDrizzle(tx as DrizzleTransaction, hasMethod('rollback'), sql, values);
  if (hasMethod('unsafe'))
    return viaPostgresJs(tx as PostgresJsTransaction, hasMethod('savepoint'), sql, values);
  if (hasMethod('query'))
    return viaPg(tx as PgClient, hasMethod('connect') && 'totalCount' in tx, sql, values);
  throw new TypeError(
    'publish: tx must be a transaction of pg, postgres, Drizzle, Kysely or Prisma. ' +
      'With any other library, run "select posthorn.publish(…)" yourself.',
  );
}

function notInTransaction(what: string, pass: string): TypeError {
  return new TypeError(`publish: tx is ${what}, and not in a transaction. Pass ${pass}.`);
}

async function viaPg(client: PgClient, isPool: boolean, sql: string, values: Parameters) {
  if (isPool) throw notInTransaction('a pg Pool', 'the client on which you ran BEGIN');
  if (client.getTransactionStatus?.() === 'I')
    throw notInTransaction('a pg client without BEGIN', 'the client on which you ran BEGIN');
  return (await client.query(sql, [...values])).rows;
}

async function viaPostgresJs(
  tx: PostgresJsTransaction,
  inTransaction: boolean,
  sql: string,
  values: Parameters,
) {
  if (!inTransaction)
    throw notInTransaction('the sql of postgres itself', 'the sql that sql.begin passes to your function');
  return tx.unsafe(sql, [...values]);
}

async function viaKysely(tx: KyselyTransaction, sql: string, values: Parameters) {
  if (!tx.isTransaction)
    throw notInTransaction(
      'the Kysely instance itself',
      'the transaction that transaction().execute passes to your function',
    );
  // The same as Kysely's CompiledQuery.raw.
  const query = {
    sql,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    parameters: values,
    queryId: { queryId: 'posthorn' },
  };
  return (await tx.executeQuery(query as never)).rows;
}

async function viaDrizzle(tx: DrizzleTransaction, inTransaction: boolean, sql: string, values: Parameters) {
  if (!inTransaction)
    throw notInTransaction(
      'the Drizzle database itself',
      'the transaction that transaction() passes to your function',
    );
  // Drizzle accepts any object that returns its text and parameters.
  const query = { getSQL: () => query, toQuery: () => ({ sql, params: [...values] }) };
  const answer = await tx.execute(query as never);
  return Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows;
}

async function viaPrisma(tx: PrismaTransaction, isClient: boolean, sql: string, values: Parameters) {
  if (isClient) throw notInTransaction('the Prisma client itself', 'what $transaction gives to its function');
  return (await tx.$queryRawUnsafe(sql, ...values)) as unknown[];
}
