/**
 * The ways to publish in the transaction that writes the order. The fourth, the log, has two variants: rows of a table,
 * and messages without a table.
 */
import type pg from 'pg';
import { publish } from '../../../src/outbox/publish.ts';

export const TENANT = 'chaos';
/** In the other database: one table for the relays that poll, one for those that follow the log. */
export const POLLED_TABLE = 'posthorn_outbox';
export const FOLLOWED_TABLE = 'followed_outbox';

export interface Order {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
}

interface Way {
  /** The database of the orders: Posthorn's, or the shop's own. */
  readonly database: 'posthorn' | 'source';
  publish(client: pg.ClientBase, order: Order): Promise<unknown>;
}

const insertInto = (table: string): Way['publish'] => {
  const text = `insert into ${table} (tenant, type, data, idempotency_key) values ($1, $2, $3, $4)`;
  return (client, { id, type, key }) => client.query(text, [TENANT, type, dataOf(id), key]);
};

const dataOf = (order: string): string => JSON.stringify({ order });

export const ways = {
  sql: {
    database: 'posthorn',
    publish: (client, { id, type, key }) =>
      client.query(
        'select posthorn.publish(type => $1, data => $2::json, tenant => $3, idempotency_key => $4)',
        [type, dataOf(id), TENANT, key],
      ),
  },
  library: {
    database: 'posthorn',
    publish: (client, { id, type, key }) =>
      publish({ type, tenant: TENANT, data: { order: id }, idempotencyKey: key }, { tx: client }),
  },
  poll: { database: 'source', publish: insertInto(POLLED_TABLE) },
  cdc: { database: 'source', publish: insertInto(FOLLOWED_TABLE) },
  message: {
    database: 'source',
    publish: (client, { id, type, key }) =>
      client.query("select pg_logical_emit_message(true, 'posthorn', $1)", [
        JSON.stringify({ type, tenant: TENANT, data: { order: id }, ...(key && { idempotency_key: key }) }),
      ]),
  },
} satisfies Record<string, Way>;

export type WayName = keyof typeof ways;
export const wayNames = Object.keys(ways) as WayName[];
export const typeOf = (way: WayName): string => `order.${way}`;

/** The table of orders is the only record of what was committed. */
export const ORDERS_TABLE = `
  create schema shop;
  create table shop.orders (id text primary key, way text not null, at float8 not null)`;
