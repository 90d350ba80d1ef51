/**
 * A shop beside Posthorn: it writes orders, and publishes each in the transaction that writes it. At the end the table
 * of orders shows what it committed, also for transactions whose answer was lost.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { publish } from '../../src/outbox/publish.ts';
import { type RegisteredEndpoint, TENANT } from './endpoints.ts';
import type { AcceptedEvent } from './producer.ts';
import type { Random } from './random.ts';
import type { Postgres } from './system.ts';

const CUSTOMERS = 3;

export class Shop {
  readonly #postgres: Postgres;
  readonly #endpoints: readonly RegisteredEndpoint[];
  readonly #random: Random;
  readonly #pool: pg.Pool;
  #orders = 0;
  #running: Promise<void>[] = [];
  #stopped = false;

  constructor(postgres: Postgres, endpoints: readonly RegisteredEndpoint[], random: Random) {
    this.#postgres = postgres;
    this.#endpoints = endpoints;
    this.#random = random;
    this.#pool = new pg.Pool({ connectionString: postgres.url, max: CUSTOMERS, application_name: 'shop' });
    this.#pool.on('error', () => {});
    // Also for connections in use: their queries fail by themselves.
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  async start(types: readonly string[], perSecond: number): Promise<void> {
    await this.#postgres.query(
      'create table chaos.orders (n int primary key, event_id text, type text, endpoints text[], at float8)',
    );
    for (let n = 0; n < CUSTOMERS; n += 1)
      this.#running.push(this.#shop(types, (CUSTOMERS * 1000) / perSecond));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
    await this.#pool.end();
  }

  /** Returns every committed order as an accepted event. */
  async ordered(): Promise<AcceptedEvent[]> {
    const rows = await this.#postgres.query<{
      event_id: string;
      type: string;
      endpoints: string[];
      at: number;
    }>('select event_id, type, endpoints, at from chaos.orders');
    return rows.map(({ event_id: id, type, endpoints, at }) => ({
      id,
      type,
      postedAt: at,
      acceptedAt: at,
      endpoints,
      keyed: false,
      order: null,
    }));
  }

  /** Describes orders without an event and events without an order. */
  async differences(): Promise<string[]> {
    const rows = await this.#postgres.query<{ n: number | null; event_id: string }>(`
      with published as (
        select posthorn.public_id('evt', id) as event_id from posthorn.events
         where convert_from(data, 'UTF8') like '{"shop":%'
      )
      select o.n, coalesce(o.event_id, p.event_id) as event_id
        from chaos.orders o full join published p using (event_id) where o.n is null or p.event_id is null`);
    return rows.map(({ n, event_id }) =>
      n === null
        ? `OUTBOX: ${event_id} is an event, but its transaction was not committed`
        : `OUTBOX: order ${n} was committed, but ${event_id} is not an event`,
    );
  }

  async #shop(types: readonly string[], everyMs: number): Promise<void> {
    while (!this.#stopped) {
      // A transaction that failed, or whose answer was lost, is not repeated: the table shows whether it was committed.
      await this.#order(this.#random.pick(types)).catch(() => delay(50));
      await delay(everyMs * (0.5 + this.#random.next()));
    }
  }

  async #order(type: string): Promise<void> {
    this.#orders += 1;
    const n = this.#orders;
    const endpoints = this.#endpoints.filter(({ types }) => types.includes(type)).map(({ name }) => name);
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      await client.query('begin');
      const key = this.#random.chance(0.3) ? `order-${n}` : null;
      const event = { type, tenant: TENANT, data: { shop: n }, idempotencyKey: key };
      const id = await publish(event, { tx: client });
      await client.query('insert into chaos.orders values ($1, $2, $3, $4, $5)', [
        n,
        id,
        type,
        endpoints,
        Date.now(),
      ]);
      await client.query(this.#random.chance(0.1) ? 'rollback' : 'commit');
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }
}
