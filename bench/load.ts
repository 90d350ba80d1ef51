/**
 * Posts events, one per request (or in batches), over raw keep-alive sockets so that the load generator takes as
 * little of the two cores as can be. `rate` 0: as fast as answers come back; otherwise so many a second, evenly.
 */
import { connect } from 'node:net';

interface Order {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  readonly events: number;
  readonly seconds: number;
  readonly rate: number;
  readonly bytes: number;
  readonly batch: number;
  readonly tenant: string;
  readonly types: string[];
}

const order = JSON.parse(process.argv[2]!) as Order;
const filler = 'x'.repeat(Math.max(0, order.bytes - 45));
const deadline = performance.now() + order.seconds * 1000;
const latencies: number[] = [];
let started = 0;
let accepted = 0;
let refused = 0;

const now = () => performance.timeOrigin + performance.now();

function request(): Buffer {
  const path = order.batch > 1 ? '/v1/events/batch' : '/v1/events';
  const event = () => {
    const type = order.types[started % order.types.length];
    started += 1;
    return `{"tenant":"${order.tenant}","type":"${type}","data":{"sent":${now().toFixed(3)},"filler":"${filler}"}}`;
  };
  const body =
    order.batch > 1 ? `{"events":[${Array.from({ length: order.batch }, event).join(',')}]}` : event();
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${order.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const mayGoOn = () => (order.events === 0 || started < order.events) && performance.now() < deadline;

class Connection {
  readonly #socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true });
  #sentAt = 0;
  #answer = '';
  #ended: () => void = () => {};
  busy = false;
  onFree: () => void = () => {};
  readonly ended = new Promise<void>((resolve) => {
    this.#ended = resolve;
  });

  constructor() {
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text: string) => this.#read(text));
    this.#socket.on('error', () => this.#ended());
    this.#socket.on('close', () => this.#ended());
  }

  send(): void {
    this.busy = true;
    this.#sentAt = performance.now();
    this.#socket.write(request());
  }

  close(): void {
    this.#socket.end();
    this.#ended();
  }

  #read(text: string): void {
    this.#answer += text;
    const headerEnd = this.#answer.indexOf('\r\n\r\n');
    if (headerEnd === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#answer)?.[1] ?? 0);
    if (this.#answer.length < headerEnd + 4 + length) return;
    // A batch is answered item by item: some may have been refused.
    const bad = this.#answer.startsWith('HTTP/1.1 202')
      ? (this.#answer.match(/"error":/g)?.length ?? 0)
      : order.batch;
    accepted += order.batch - bad;
    refused += bad;
    if (latencies.length < 500_000) latencies.push(performance.now() - this.#sentAt);
    this.#answer = '';
    this.busy = false;
    this.onFree();
  }
}

const begin = performance.now();
const beganAt = now();
const connections = Array.from({ length: order.connections }, () => new Connection());
if (order.rate === 0) {
  for (const connection of connections) {
    connection.onFree = () => (mayGoOn() ? connection.send() : connection.close());
    connection.send();
  }
} else {
  const tick = setInterval(() => {
    const due = Math.floor(((performance.now() - begin) / 1000) * order.rate);
    for (const connection of connections) {
      if (started >= due || !mayGoOn()) break;
      if (!connection.busy) connection.send();
    }
    if (!mayGoOn()) {
      clearInterval(tick);
      for (const connection of connections) {
        connection.onFree = () => connection.close();
        if (!connection.busy) connection.close();
      }
    }
  }, 2);
}
await Promise.all(connections.map((connection) => connection.ended));
const seconds = (performance.now() - begin) / 1000;
process.send?.({ started, accepted, refused, seconds, latencies, beganAt }, () => process.disconnect());
