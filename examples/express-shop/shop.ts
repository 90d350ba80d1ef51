/**
 * A shop that sends webhooks about its orders. Posthorn runs inside the same process; you need only a PostgreSQL database.
 *
 *   DATABASE_URL=postgres://localhost/shop npm run example
 *   curl -X POST localhost:3000/orders -H 'content-type: application/json' -d '{"item":"horn","amount":3}'
 *
 * One transaction stores the order and publishes the event, so there is never one without the other.
 */
import express from 'express';
import pg from 'pg';
import { createPosthorn } from 'posthorn';

// The shop and Posthorn share one database. Posthorn's console is at http://127.0.0.1:8787/console.
const databaseUrl = process.env.DATABASE_URL;
if (databaseUrl === undefined) {
  console.error(
    'DATABASE_URL is not set. Set it to a PostgreSQL database for the shop and Posthorn, such as postgres://localhost/shop.',
  );
  process.exit(2);
}
const posthorn = await createPosthorn({
  mode: 'dev',
  databaseUrl,
  dataDir: process.env.POSTHORN_DATA_DIR ?? './.posthorn',
  port: Number(process.env.POSTHORN_PORT ?? 8787),
});

const database = new pg.Pool({ connectionString: databaseUrl });
await database.query(
  'create table if not exists orders (id bigint generated always as identity primary key, item text not null, amount int not null)',
);

const shop = express();
shop.use(express.json());

shop.post('/orders', async (request, response) => {
  const { item, amount } = request.body as { item: string; amount: number };
  const client = await database.connect();
  try {
    await client.query('begin');
    const { rows } = await client.query('insert into orders (item, amount) values ($1, $2) returning id', [
      item,
      amount,
    ]);
    const order = { id: rows[0].id, item, amount };
    const event = await posthorn.publish({ type: 'order.created', data: order }, { tx: client });
    await client.query('commit');
    response.status(201).json({ order, event: event.id });
  } catch (error) {
    await client.query('rollback');
    response.status(400).json({ error: (error as Error).message });
  } finally {
    client.release();
  }
});

const server = shop.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  console.log(`shop: http://127.0.0.1:${port}`);
  console.log(`posthorn: ${posthorn.url}/console  (admin key: ${posthorn.adminKey})`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    server.close();
    await posthorn.stop();
    await database.end();
  });
}
