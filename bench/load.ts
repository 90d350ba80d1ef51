/**
 * The load generator: posts events over raw keep-alive sockets, because an HTTP client would take much of the two cores.
 * With `rate` 0 each connection sends as fast as responses arrive; otherwise `rate` events per second, evenly.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

interface Options {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  readonly events: number;
  readonly seconds: number;
  readonly rate: number;
  readonly bytes: number;
  readonly batch: number;
  readonly tenant: string;
  /** More than 1: tenants take turns, named `<tenant>-0` and so on. */
  readonly tenants: number;
  /** Random data: PostgreSQL cannot compress it. */
  readonly isRandom: boolean;
  readonly types: string[];
}

const options = JSON.parse(process.argv[2]!) as Options;
const fillerBytes = Math.max(0, options.bytes - 45);
const filler = options.isRandom
  ? randomBytes(fillerBytes).toString('base64').slice(0, fillerBytes)
  : 'x'.repeat(fillerBytes);
const deadline = performance.now() + options.seconds * 1000;
const latencies: number[] = [];
let sentCount = 0;
let accepted = 0;
let rejected = 0;

const now = () => performance.timeOrigin + performance.now();
/** The placeholder for the time of sending. It has a fixed length, so that a request is built once and then only stamped. */
const TIMESTAMP = '0000000000000.000';

const buildEvent = (type: string, tenant = options.tenant) =>
  `{"tenant":"${tenant}","type":"${type}","data":{"sent":${TIMESTAMP},"filler":"${filler}"}}`;

interface RequestTemplate {
  readonly bytes: Buffer;
  /** The offsets of the time of sending. */
  readonly timestamps: number[];
}

function buildTemplate(path: string, body: string): RequestTemplate {
  const bytes = Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${options.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const timestamps: number[] = [];
  for (let at = bytes.indexOf(TIMESTAMP); at !== -1; at = bytes.indexOf(TIMESTAMP, at + 1))
    timestamps.push(at);
  return { bytes, timestamps };
}

const templates: readonly RequestTemplate[] =
  options.batch > 1
    ? options.types.map((_, first) => {
        const events = Array.from({ length: options.batch }, (_, index) =>
          buildEvent(options.types[(first + index) % options.types.length]!),
        );
        return buildTemplate('/v1/events/batch', `{"events":[${events.join(',')}]}`);
      })
    : options.tenants > 1
      ? Array.from({ length: options.tenants }, (_, index) => {
          const type = options.types[index % options.types.length]!;
          return buildTemplate('/v1/events', buildEvent(type, `${options.tenant}-${index}`));
        })
      : options.types.map((type) => buildTemplate('/v1/events', buildEvent(type)));
const maxRequestBytes = Math.max(...templates.map(({ bytes }) => bytes.length));

const shouldSendMore = () =>
  (options.events === 0 || sentCount < options.events) && performance.now() < deadline;

class Connection {
  readonly #socket: Socket;
  readonly #request = Buffer.allocUnsafeSlow(maxRequestBytes);
  #sentAt = 0;
  #response = '';
  isBusy = false;
  onResponse: () => void = () => {};
  readonly closed: Promise<void>;
  readonly #markClosed: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#markClosed = resolve;
    const onRead = (bytes: number, buffer: Uint8Array): boolean => {
      this.#read((buffer as Buffer).toString('latin1', 0, bytes));
      return true;
    };
    this.#socket = connect({
      port: options.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafeSlow(64 * 1024), callback: onRead },
    });
    this.#socket.on('error', () => this.#onClosed());
    this.#socket.on('close', () => this.#onClosed());
  }

  /** Call only while the connection is not busy: all its requests share one buffer. */
  send(): void {
    this.isBusy = true;
    const { bytes, timestamps } = templates[sentCount % templates.length]!;
    sentCount += options.batch;
    bytes.copy(this.#request);
    const timestamp = now().toFixed(3);
    for (const at of timestamps) this.#request.write(timestamp, at, 'latin1');
    this.#sentAt = performance.now();
    this.#socket.write(this.#request.subarray(0, bytes.length));
  }

  close(): void {
    this.#socket.end();
    this.#markClosed();
  }

  /** The server closes connections that were opened and never used. Nothing is sent on them. */
  #onClosed(): void {
    this.isBusy = true;
    this.#markClosed();
  }

  #read(text: string): void {
    // A timeout of a connection that was never used.
    if (!this.isBusy) return;
    this.#response = this.#response === '' ? text : this.#response + text;
    const headerEnd = this.#response.indexOf('\r\n\r\n');
    if (headerEnd === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#response)?.[1] ?? 0);
    if (this.#response.length < headerEnd + 4 + length) return;
    // The response to a batch has a result per event: some may be rejected.
    const isAccepted = this.#response.startsWith('HTTP/1.1 202');
    const rejectedNow = !isAccepted
      ? options.batch
      : options.batch > 1
        ? (this.#response.match(/"error":/g)?.length ?? 0)
        : 0;
    accepted += options.batch - rejectedNow;
    rejected += rejectedNow;
    if (latencies.length < 500_000) latencies.push(performance.now() - this.#sentAt);
    this.#response = '';
    this.isBusy = false;
    this.onResponse();
  }
}

const startedAt = now();
const start = performance.now();
const connections = Array.from({ length: options.connections }, () => new Connection());
if (options.rate === 0) {
  for (const connection of connections) {
    connection.onResponse = () => (shouldSendMore() ? connection.send() : connection.close());
    connection.send();
  }
} else {
  const tick = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1000) * options.rate);
    for (const connection of connections) {
      if (sentCount >= due || !shouldSendMore()) break;
      if (!connection.isBusy) connection.send();
    }
    if (!shouldSendMore()) {
      clearInterval(tick);
      for (const connection of connections) {
        connection.onResponse = () => connection.close();
        if (!connection.isBusy) connection.close();
      }
    }
  }, 2);
}
await Promise.all(connections.map((connection) => connection.closed));
const seconds = (performance.now() - start) / 1000;
process.send?.({ accepted, rejected, seconds, latencies, startedAt }, () => process.disconnect());
