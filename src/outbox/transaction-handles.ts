/**
 * The transaction of whichever library the caller uses, told apart by what it can do. A handle that is recognizably not
 * in a transaction is refused: the event would be published whatever becomes of the work beside it, and passing `db`
 * where `tx` was meant is an easy mistake.
 */
type Parameters = readonly (string | null)[];

/** `pg`: a Client or PoolClient on which BEGIN has been run. */
export interface PgClient {
  query(text: string, values: (string | null)[]): Promise<{ rows: unknown[] }>;
  getTransactionStatus?(): string | null;
}

/** `postgres`: what `sql.begin` gives. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters: (string | null)[]): PromiseLike<readonly unknown[]>;
  savepoint: unknown;
}

/** Drizzle on PostgreSQL, with any driver: what `db.transaction` gives. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  rollback(): never;
}

/** Kysely on PostgreSQL: what `db.transaction().execute` gives. */
export interface KyselyTransaction {
  executeQuery(query: never): Promise<{ rows: unknown[] }>;
  readonly isTransaction: boolean;
}

/** Prisma on PostgreSQL: what `prisma.$transaction(async (tx) => …)` gives. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: (string | null)[]): PromiseLike<unknown>;
}

export type Transaction =
  | PgClient
  | PostgresJsTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | PrismaTransaction;

/** Runs one statement, and returns its rows. */
export async function runOn(tx: Transaction, sql: string, values: Parameters): Promise<readonly unknown[]> {
  const can = (name: string): boolean =>
    typeof (tx as unknown as Record<string, unknown>)?.[name] === 'function';
  if (can('$queryRawUnsafe')) return viaPrisma(tx as PrismaTransaction, can('$connect'), sql, values);
  if (can('executeQuery')) return viaKysely(tx as KyselyTransaction, sql, values);
  if (can('execute')) return viaDrizzle(tx as DrizzleTransaction, can('rollback'), sql, values);
  if (can('unsafe')) return viaPostgresJs(tx as PostgresJsTransaction, can('savepoint'), sql, values);
  if (can('query')) return viaPg(tx as PgClient, can('connect') && 'totalCount' in tx, sql, values);
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
  if (!inTransaction) throw notInTransaction('the sql of postgres itself', 'the one that sql.begin gives');
  return tx.unsafe(sql, [...values]);
}

async function viaKysely(tx: KyselyTransaction, sql: string, values: Parameters) {
  if (!tx.isTransaction)
    throw notInTransaction('the Kysely instance itself', 'what transaction().execute gives');
  // What CompiledQuery.raw of Kysely makes.
  const query = {
    sql,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    parameters: values,
    queryId: { queryId: 'posthorn' },
  };
  return (await tx.executeQuery(query as never)).rows;
}

async function viaDrizzle(tx: DrizzleTransaction, inTransaction: boolean, sql: string, values: Parameters) {
  if (!inTransaction) throw notInTransaction('the Drizzle database itself', 'what transaction gives');
  // What Drizzle takes for SQL: something that says what its text and its parameters are.
  const query = { getSQL: () => query, toQuery: () => ({ sql, params: [...values] }) };
  const answer = await tx.execute(query as never);
  return Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows;
}

async function viaPrisma(tx: PrismaTransaction, isClient: boolean, sql: string, values: Parameters) {
  if (isClient) throw notInTransaction('the Prisma client itself', 'what $transaction gives to its function');
  return (await tx.$queryRawUnsafe(sql, ...values)) as unknown[];
}
