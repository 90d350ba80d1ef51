/** Compares the orders that were committed with the events that were stored. */
import type { AcceptedEvent } from '../producer.ts';
import type { Postgres } from '../system.ts';
import type { Complaint } from '../verdict.ts';
import { TENANT, typeOf, type WayName } from './ways.ts';

export interface CommittedOrder {
  readonly id: string;
  readonly way: WayName;
  readonly at: number;
}

export interface ShopEvent {
  readonly id: string;
  readonly order: string;
}

export async function readOrders(databases: readonly Postgres[]): Promise<CommittedOrder[]> {
  const orders: CommittedOrder[] = [];
  for (const database of databases)
    orders.push(...(await database.query<CommittedOrder>('select id, way, at from shop.orders')));
  return orders;
}

export const readEvents = (postgres: Postgres): Promise<ShopEvent[]> =>
  postgres.query<ShopEvent>(
    `select posthorn.public_id('evt', id) as id, convert_from(data, 'UTF8')::json ->> 'order' as order
       from posthorn.events where tenant = $1 order by id`,
    [TENANT],
  );

/** Checks that each order has exactly one event and each event has an order. */
export function compare(orders: readonly CommittedOrder[], events: readonly ShopEvent[]): Complaint[] {
  const byOrder = Map.groupBy(events, ({ order }) => order);
  const complaints = orders.flatMap(({ id, way, at }): Complaint[] => {
    const found = byOrder.get(id) ?? [];
    byOrder.delete(id);
    if (found.length === 0)
      return [{ about: `NOT PUBLISHED: order ${id} (${way}) was committed, but has no event`, at }];
    if (found.length === 1) return [];
    const about = `TWICE: order ${id} (${way}) is ${found.length} events: ${found.map((event) => event.id).join(', ')}`;
    return [{ about, event: found[0]!.id, other: found[1]!.id, at }];
  });
  for (const [order, [event]] of byOrder)
    complaints.push({
      about: `NEVER COMMITTED: ${event!.id} is an event of order ${order}, which was not committed`,
      event: event!.id,
    });
  return complaints;
}

/** Returns the orders as accepted events, which must be delivered. */
export function toAccepted(
  orders: readonly CommittedOrder[],
  events: readonly ShopEvent[],
  endpointsOf: (type: string) => string[],
): AcceptedEvent[] {
  const byOrder = new Map(events.map(({ id, order }) => [order, id]));
  return orders.flatMap(({ id: order, way, at }) => {
    const id = byOrder.get(order);
    if (id === undefined) return [];
    const type = typeOf(way);
    const endpoints = endpointsOf(type);
    return [{ id, type, postedAt: at, acceptedAt: at, endpoints, keyed: false, order: null }];
  });
}
