/** OUT-1: a committed event is published exactly once, whichever process dies, and however many processes read the outbox. */
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  newReceiver,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { readScrape } from '../support/scrape.ts';
import { Shop } from '../support/shop.ts';

const TENANT = 'acme';

async function newShop() {
  const database = await createTestDatabase();
  await database.query('create table orders (n int primary key, event_id text not null)');
  const shop = await Shop.open(database.url);
  onTestFinished(async () => {
    await shop.close();
    await database.drop();
  });
  const order = (n: number, end: 'commit' | 'rollback' = 'commit'): Promise<string> => {
    const work = async (client: Parameters<Shop['publish']>[0]) => {
      const id = await shop.publish(client, { type: 'order.created', data: String(n), tenant: TENANT });
      await client.query('insert into orders values ($1, $2)', [n, id]);
      return id;
    };
    return end === 'commit' ? shop.transaction(work) : shop.rollback(work);
  };
  const count = async (table: string): Promise<number> =>
    Number((await database.query<{ count: string }>(`select count(*) from ${table}`))[0]!.count);
  /** Orders whose event is missing, and events that no order has. */
  const differences = () =>
    database.query(
      `select o.n, e.id from orders o full join posthorn.events e on o.event_id = posthorn.public_id('evt', e.id)
        where o.n is null or e.id is null`,
    );
  return { database, shop, order, count, differences };
}

test('OUT-1: after repeated kill -9, every order has its event and every event has its order', async () => {
  const { database, order, count, differences } = await newShop();
  const receiver = await newReceiver();
  const settings = { database, env: { POSTHORN_INGEST_BATCH_ROWS: '10' } };
  let posthorn = await startTestPosthorn(settings);
  await createEndpoint(posthorn, { url: receiver.url, tenant: TENANT });

  let orders = 0;
  for (let round = 0; round < 2; round += 1) {
    const before = await count('posthorn.events');
    const customers = Array.from({ length: 6 }, async () => {
      for (let n = 0; n < 25; n += 1) {
        orders += 1;
        await order(orders, orders % 5 === 0 ? 'rollback' : 'commit');
      }
    });
    await eventually('it is in the middle of it', async () => (await count('posthorn.events')) > before + 10);
    await posthorn.kill('SIGKILL');
    // No server runs, and the shop continues: the rows wait.
    await Promise.all(customers);
    orders += 1;
    await order(orders);
    expect(await count('posthorn.outbox')).toBeGreaterThan(0);
    posthorn = await startTestPosthorn(settings);
  }
  await eventually('the outbox is empty', async () => (await count('posthorn.outbox')) === 0);
  expect(await differences()).toEqual([]);
  expect(await count('posthorn.outbox_rejected')).toBe(0);
  await eventually('everything is delivered', async () => (await count('posthorn.queue')) === 0, {
    timeoutMs: 30_000,
  });
  const ids = (await database.query<{ event_id: string }>('select event_id from orders')).map(
    ({ event_id }) => event_id,
  );
  expect(ids.length).toBeGreaterThan(200);
  // Each event arrives at least once, because a kill can happen between a request and its record. No other event arrives.
  expect(new Set(arrivals(receiver.requests).keys())).toEqual(new Set(ids));
  await posthorn.stop();
});

test('OUT-1: two servers on the same outbox store each row as one event, in order, and one continues if the other dies', async () => {
  const { database, order, count, differences } = await newShop();
  const receiver = await newReceiver();
  // Both servers read all the time, a few rows each, so that they conflict as often as possible.
  const settings = {
    database,
    env: { POSTHORN_OUTBOX_STAND_IN_MS: '10', POSTHORN_OUTBOX_POLL_MS: '1', POSTHORN_INGEST_BATCH_ROWS: '7' },
  };
  const [one, two] = await Promise.all([startTestPosthorn(settings), startTestPosthorn(settings)]);
  await createEndpoint(one, { url: receiver.url, tenant: TENANT, ordering: 'fifo', max_in_flight: 1 });
  for (let n = 0; n < 150; n += 1) await order(n);
  await receiver.waitFor(150, 30_000);
  expect(receiver.requests.map(({ body }) => JSON.parse(body.toString()).data)).toEqual(
    Array.from({ length: 150 }, (_, n) => n),
  );
  expect(await differences()).toEqual([]);
  const scrapes = await Promise.all([one, two].map((server) => server.api('GET', '/metrics')));
  const accepted = scrapes.map(({ text }) => readScrape(text).value('posthorn_events_accepted_total') || 0);
  expect(accepted[0]! + accepted[1]!, `counted once, where it was stored: ${accepted}`).toBe(150);
  await two.kill('SIGKILL');
  const id = await order(150);
  await untilDeliveries(one, id, 'delivered');
  await eventually('the outbox is empty', async () => (await count('posthorn.outbox')) === 0);
  expect(await differences()).toEqual([]);
  await one.stop();
});

test('OUT-1: without a worker, an API server stores published events', async () => {
  const { database, order, count } = await newShop();
  const api = await startTestPosthorn({
    database,
    args: ['--role', 'api'],
    env: { POSTHORN_OUTBOX_STAND_IN_MS: '50' },
  });
  await order(1);
  await eventually('it is stored', async () => (await count('posthorn.events')) === 1);
  await api.stop();
});
