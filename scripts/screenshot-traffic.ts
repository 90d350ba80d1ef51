/** Traffic for the screenshots: endpoints of two tenants, receivers that behave like real ones, and a stream of events. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Traffic {
  readonly flakyEndpoint: string;
  /** Rejects if an event could not be published. */
  readonly failure: Promise<never>;
  /** Returns the id of an event with a dead delivery. */
  findDeadEvent(): Promise<string>;
  stop(): Promise<void>;
}

type Answer = readonly [status: number, body: string, delayMs: number];
const vary = (meanMs: number): number => meanMs * (0.6 + Math.random() * 0.8);

/** How the receiver answers, by path. */
const BEHAVIOURS: Readonly<Record<string, () => Answer>> = {
  '/orders': () => [200, '{"received":true}', vary(25)],
  '/crm': () =>
    Math.random() < 0.12 ? [503, '{"error":"try again later"}', vary(60)] : [200, 'ok', vary(45)],
  '/warehouse': () => [202, '{"queued":true}', vary(120)],
  '/analytics': () => [204, '', vary(8)],
  '/erp': () => [500, 'NullPointerException at OrderMapper', vary(90)],
  '/invoices': () => [422, '{"error":"unknown customer"}', vary(30)],
};

const ENDPOINTS = [
  ['acme', '/orders', 'Order service', ['order.*']],
  ['acme', '/crm', 'CRM', ['*']],
  ['acme', '/analytics', 'Analytics', ['*']],
  ['acme', '/erp', 'Old ERP', ['order.refunded']],
  ['globex', '/warehouse', 'Warehouse', ['order.*', 'shipment.*']],
  ['globex', '/invoices', 'Invoicing', ['invoice.*']],
] as const;
const TYPES = ['order.created', 'order.paid', 'order.created', 'shipment.sent', 'customer.updated'];
const RARE_TYPES = ['order.refunded', 'invoice.sent'];
const RETRY = { schedule: [0, 1, 2, 4], jitter: 'none' };
const BREAKER = { consecutive: 6, cooldown_seconds: 4, max_cooldown_seconds: 4 };

/** Creates the endpoints and publishes events until it is stopped. */
export async function startTraffic(url: string, key: string): Promise<Traffic> {
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => {
      const [status, body, delayMs] = BEHAVIOURS[request.url!]!();
      setTimeout(() => response.writeHead(status, { 'content-type': 'application/json' }).end(body), delayMs);
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;

  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
      // A request without an answer must not keep `stop` waiting.
      signal: AbortSignal.timeout(30_000),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };

  const ids = new Map<string, string>();
  for (const [tenant, path, description, events] of ENDPOINTS) {
    const endpoint = {
      tenant,
      url: `http://localhost:${port}${path}`,
      description,
      events,
      retry: RETRY,
      breaker: BREAKER,
    };
    ids.set(path, (await api<{ id: string }>('POST', '/v1/endpoints', endpoint)).id);
  }

  let isStopped = false;
  const publish = async (): Promise<void> => {
    const startedAt = performance.now();
    for (let order = 1000; !isStopped; order += 1) {
      const type = Math.random() < 0.04 ? pickRandom(RARE_TYPES) : pickRandom(TYPES);
      await api('POST', '/v1/events', {
        tenant: Math.random() < 0.65 ? 'acme' : 'globex',
        type,
        data: createOrder(order),
      });
      // The load rises and falls, as on a real day.
      const load = 1.2 + Math.sin((performance.now() - startedAt) / 20_000);
      await new Promise((resolve) => setTimeout(resolve, 25 / Math.max(0.2, load)));
    }
  };
  const publishing = publish();
  const failure = new Promise<never>((_, reject) => publishing.catch(reject));
  // Awaiting callers get the error. Without one, it must not end the process.
  failure.catch(() => {});

  return {
    failure,
    flakyEndpoint: ids.get('/crm')!,
    async findDeadEvent() {
      const { data } = await api<{ data: { event_id: string }[] }>(
        'GET',
        `/v1/dead-letters?endpoint_id=${ids.get('/erp')}&limit=1`,
      );
      return data[0]!.event_id;
    },
    async stop() {
      isStopped = true;
      await publishing.catch(() => {});
      receiver.close();
      receiver.closeAllConnections();
    },
  };
}

const pickRandom = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

const createOrder = (order: number) => ({
  order_id: `ord_${order}`,
  amount: Math.round(Math.random() * 20_000) / 100,
  currency: 'EUR',
  customer: { id: `cus_${order % 40}`, country: pickRandom(['DE', 'FR', 'NL', 'AT']) },
  lines: [{ sku: pickRandom(['A-100', 'B-220', 'C-7']), quantity: 1 + (order % 3) }],
});
