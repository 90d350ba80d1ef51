/**
 * A tenant beside an attack, in a process of its own, so that the load of the attack does not disturb its measurement.
 * Prints its address. `POST /hook` is its endpoint. `GET /measure?ms=2000` publishes an event every 200 ms for this long, and
 * answers with the time from publishing to receiving of each, in milliseconds; null if an event did not arrive.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';

const { POSTHORN_URL, POSTHORN_KEY, VICTIM_TENANT } = process.env;
const PUBLISH_EVERY_MS = 200;
const GIVE_UP_AFTER_MS = 10_000;

const client = new Agent({ connections: 20 });
/** By the number of the event. */
const arrivals = new Map<number, (at: number) => void>();
let published = 0;

/** Returns null if the event was refused or did not arrive. */
async function publishOne(): Promise<number | null> {
  published += 1;
  const data = published;
  const startedAt = performance.now();
  const arrived = new Promise<number>((resolve) => arrivals.set(data, resolve));
  const { statusCode, body } = await request(`${POSTHORN_URL}/v1/events`, {
    dispatcher: client,
    method: 'POST',
    headers: { authorization: `Bearer ${POSTHORN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ tenant: VICTIM_TENANT, type: 'victim.event', data }),
  });
  await body.dump();
  const at = statusCode === 202 ? await Promise.race([arrived, sleep(GIVE_UP_AFTER_MS, null)]) : null;
  arrivals.delete(data);
  return at === null ? null : Math.round(at - startedAt);
}

async function measure(forMs: number): Promise<(number | null)[]> {
  const latencies: Promise<number | null>[] = [];
  for (const endsAt = performance.now() + forMs; performance.now() < endsAt; ) {
    latencies.push(publishOne().catch(() => null));
    await sleep(PUBLISH_EVERY_MS);
  }
  return Promise.all(latencies);
}

const server = createServer((incoming, response) => {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    const url = new URL(incoming.url!, 'http://victim');
    if (url.pathname === '/hook') {
      const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: number };
      arrivals.get(data)?.(performance.now());
      response.end();
      return;
    }
    void measure(Number(url.searchParams.get('ms'))).then((latencies) =>
      response.end(JSON.stringify(latencies)),
    );
  });
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`Victim at http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
);
