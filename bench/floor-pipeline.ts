/**
 * The smallest program that keeps the promise of a 202, for `bench --only floor`: it stores an event with one insert and one
 * commit, answers, signs and POSTs the event, and records the results of 20 ms with one statement. It has one process, one
 * table with one index, and nothing else: no keys, tenants, matching, limits, retries, leases, history or metrics.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { Pool } from 'undici';

const SETTLE_EVERY_MS = 20;

const [databaseUrl, receiverPort] = process.argv.slice(2) as [string, string];
const key = randomBytes(32);
const database = new pg.Pool({ connectionString: databaseUrl, max: 64 });
const receiver = new Pool(`http://127.0.0.1:${receiverPort}`, { connections: 64, pipelining: 1 });
await database.query(
  'create table if not exists public.floor_events (id uuid primary key, data bytea, done_at timestamptz)',
);

let delivered: string[] = [];
let willSettle = false;

async function settleSoon(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_EVERY_MS));
  willSettle = false;
  const ids = delivered;
  delivered = [];
  await database.query({
    name: 'settle',
    text: 'update public.floor_events set done_at = now() where id = any ($1::uuid[])',
    values: [ids],
  });
}

async function deliver(id: string, body: Buffer): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const { body: response } = await receiver.request({
    method: 'POST',
    path: '/ok/floor',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  });
  await response.dump();
  delivered.push(id);
  if (willSettle) return;
  willSettle = true;
  await settleSoon();
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => void accept());
  const accept = async (): Promise<void> => {
    const body = Buffer.concat(chunks);
    const id = randomUUID();
    await database.query({
      name: 'accept',
      text: 'insert into public.floor_events (id, data) values ($1, $2)',
      values: [id, body],
    });
    response.writeHead(202, { 'content-type': 'application/json' }).end(`{"id":"${id}"}`);
    await deliver(id, body);
  };
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
