/**
 * Posts events, one per request (or in batches), over raw keep-alive sockets so that the load generator takes as
 * little of the two cores as can be. `rate` 0: as fast as answers come back; otherwise so many a second, evenly.
 */
import { connect, type Socket } from 'node:net';

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
/** Always as long as this, so that a request can be written once and stamped each time it is sent. */
const STAMP = '0000000000000.000';

const eventOf = (type: string) =>
  `{"tenant":"${order.tenant}","type":"${type}","data":{"sent":${STAMP},"filler":"${filler}"}}`;

/** A request as bytes, and where in it the time of sending stands. */
interface Template {
  readonly bytes: Buffer;
  readonly stamps: number[];
}

function templateOf(path: string, body: string): Template {
  const bytes = Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${order.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const stamps: number[] = [];
  for (let at = bytes.indexOf(STAMP); at !== -1; at = bytes.indexOf(STAMP, at + 1)) stamps.push(at);
  return { bytes, stamps };
}

const templates: readonly Template[] =
  order.batch > 1
    ? order.types.map((_, first) => {
        const events = Array.from({ length: order.batch }, (_, index) =>
          eventOf(order.types[(first + index) % order.types.length]!),
        );
        return templateOf('/v1/events/batch', `{"events":[${events.join(',')}]}`);
      })
    : order.types.map((type) => templateOf('/v1/events', eventOf(type)));
const longest = Math.max(...templates.map(({ bytes }) => bytes.length));

const mayGoOn = () => (order.events === 0 || started < order.events) && performance.now() < deadline;

class Connection {
  readonly #socket: Socket;
  readonly #request = Buffer.allocUnsafeSlow(longest);
  #sentAt = 0;
  #answer = '';
  #ended: () => void = () => {};
  busy = false;
  onFree: () => void = () => {};
  readonly ended = new Promise<void>((resolve) => {
    this.#ended = resolve;
  });

  constructor() {
    const read = (bytes: number, buffer: Uint8Array): boolean => {
      this.#read((buffer as Buffer).toString('latin1', 0, bytes));
      return true;
    };
    this.#socket = connect({
      port: order.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafeSlow(64 * 1024), callback: read },
    });
    this.#socket.on('error', () => this.#ended());
    this.#socket.on('close', () => this.#ended());
  }

  /** Nothing else of this connection is on its way, so its one buffer is free to be written again. */
  send(): void {
    this.busy = true;
    const { bytes, stamps } = templates[started % templates.length]!;
    started += order.batch;
    bytes.copy(this.#request);
    const stamp = now().toFixed(3);
    for (const at of stamps) this.#request.write(stamp, at, 'latin1');
    this.#sentAt = performance.now();
    this.#socket.write(this.#request.subarray(0, bytes.length));
  }

  close(): void {
    this.#socket.end();
    this.#ended();
  }

  #read(text: string): void {
    this.#answer = this.#answer === '' ? text : this.#answer + text;
    const headerEnd = this.#answer.indexOf('\r\n\r\n');
    if (headerEnd === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#answer)?.[1] ?? 0);
    if (this.#answer.length < headerEnd + 4 + length) return;
    // A batch is answered item by item: some may have been refused.
    const good = this.#answer.startsWith('HTTP/1.1 202');
    const bad =
      good && order.batch > 1 ? (this.#answer.match(/"error":/g)?.length ?? 0) : good ? 0 : order.batch;
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
