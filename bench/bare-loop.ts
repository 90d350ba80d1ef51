/** The yardstick: sign and POST with undici, no storage. One process, 64 connections, the bytes that Posthorn sends. */
import { createHmac, randomBytes } from 'node:crypto';
import { Pool } from 'undici';

const [port, seconds, bytes] = process.argv.slice(2).map(Number) as [number, number, number];
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 64, pipelining: 1 });
const key = randomBytes(32);
const data = JSON.stringify({ sent: 0, filler: 'x'.repeat(Math.max(0, bytes - 25)) });
const until = performance.now() + seconds * 1000;
let done = 0;

async function one(): Promise<void> {
  while (performance.now() < until) {
    const number = String(done).padStart(26, '0');
    const id = `evt_${number}`;
    const timestamp = String(Math.floor(Date.now() / 1000));
    const body = `{"id":"${id}","type":"order.created","timestamp":"2026-01-01T00:00:00.000Z","data":${data}}`;
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    const { body: answer } = await pool.request({
      method: 'POST',
      path: '/ok/bare',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Posthorn/0.1.0',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'posthorn-event-type': 'order.created',
        'posthorn-delivery': `dlv_${number}`,
        'posthorn-attempt': '1',
        'webhook-signature': `v1,${signature}`,
      },
      body,
    });
    await answer.dump();
    done += 1;
  }
}

const started = performance.now();
await Promise.all(Array.from({ length: 64 }, one));
const perSecond = done / ((performance.now() - started) / 1000);
await pool.close();
process.send?.({ perSecond }, () => process.disconnect());
