/**
 * The shop, in its own process: it writes orders, and publishes each in the transaction that writes it. It keeps no
 * state and may be killed at any time: at the end the tables of orders show what it committed.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { Random } from '../random.ts';
import { typeOf, type WayName, wayNames, ways } from './ways.ts';

const CUSTOMERS_PER_WAY = 2;

/** Average time between two orders of one customer. */
const everyMs = (1000 * CUSTOMERS_PER_WAY * wayNames.length) / Number(process.env.SHOP_ORDERS_PER_SECOND);
const random = new Random(Number(process.env.SHOP_SEED) + process.pid);
const pools = {
  posthorn: poolTo(process.env.SHOP_POSTHORN_URL!),
  source: poolTo(process.env.SHOP_SOURCE_URL!),
};
let stopped = false;

function poolTo(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 6, application_name: 'shop' });
  pool.on('error', () => {});
  // Also for connections in use: their queries fail by themselves.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

async function customer(way: WayName): Promise<void> {
  while (!stopped) {
    // A transaction that failed, or whose answer was lost, is not repeated: the table shows whether it was committed.
    await order(way).catch(() => delay(50));
    await delay(everyMs * (0.5 + random.next()));
  }
}

async function order(way: WayName): Promise<void> {
  const { database, publish } = ways[way];
  const client = await pools[database].connect();
  let failure: Error | undefined;
  try {
    const id = randomUUID();
    const type = typeOf(way);
    const key = random.chance(0.3) ? `order-${id}` : null;
    await client.query('begin');
    await client.query('insert into shop.orders (id, way, at) values ($1, $2, $3)', [id, way, Date.now()]);
    if (random.chance(0.1)) {
      await client.query('savepoint second_thoughts');
      await publish(client, { id: `never-${id}`, type, key: null });
      await client.query('rollback to second_thoughts');
    }
    await publish(client, { id, type, key });
    await client.query(random.chance(0.1) ? 'rollback' : 'commit');
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

const customers = wayNames.flatMap((way) => Array.from({ length: CUSTOMERS_PER_WAY }, () => customer(way)));
process.stdout.write('open\n');
process.once('SIGTERM', async () => {
  stopped = true;
  await Promise.all(customers);
  await Promise.all([pools.posthorn.end(), pools.source.end()]);
});
