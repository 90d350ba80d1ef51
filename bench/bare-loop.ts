/**
 * The baseline: signs and POSTs with undici, without storage. One process, 64 connections, the same bytes per request as
 * Posthorn sends.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { Pool } from 'undici';

const [port, seconds, bytes] = process.argv.slice(2).map(Number) as [number, number, number];
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 64, pipelining: 1 });
const key = randomBytes(32);
const data = JSON.stringify({ sent: 0, filler: 'x'.repeat(Math.max(0, bytes - 25)) });
const deadline = performance.now() + seconds * 1000;
let sentCount = 0;

async function sendInLoop(): Promise<void> {
  while (performance.now() < deadline) {
    const number = String(sentCount).padStart(26, '0');
    const id = `evt_${number}`;
    const timestamp = String(Math.floor(Date.now() / 1000));
    const body = `{"id":"${id}","type":"order.created","timestamp":"2026-01-01T00:00:00.000Z","data":${data}}`;
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    const { body: response } = await pool.request({
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
    await response.dump();
    sentCount += 1;
  }
}

const startedAt = performance.now();
const cpuBefore = process.cpuUsage();
await Promise.all(Array.from({ length: 64 }, sendInLoop));
const perSecond = sentCount / ((performance.now() - startedAt) / 1000);
const cpu = process.cpuUsage(cpuBefore);
const cpuUsPerRequest = (cpu.user + cpu.system) / sentCount;
await pool.close();
process.send?.({ perSecond, cpuUsPerRequest }, () => process.disconnect());
