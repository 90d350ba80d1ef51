/**
 * The streaming replication protocol on a connection of `pg`: START_REPLICATION, then both sides send CopyData.
 *
 *   server → 'w' a piece of the log, 'k' keepalive (and whether it wants an answer)
 *   client → 'r' the confirmed position: the server may remove log before it
 *
 * A timer sends the status even if nothing is read. So a slow consumer can pause the stream for any time, and the server
 * does not end the connection (`wal_sender_timeout`).
 */
import pg from 'pg';

export interface ReplicationOptions {
  readonly connectionString: string;
  readonly slot: string;
  /** Options of the output plugin. */
  readonly pluginOptions: Readonly<Record<string, string>>;
  readonly statusMs: number;
  /** Called with each message of the output plugin. The buffer is reused afterwards. */
  readonly onData: (payload: Buffer) => void;
  /** Called when the server has sent everything up to `lsn`. */
  readonly onCaughtUp: (lsn: bigint) => void;
}

export interface ReplicationStream {
  /** Resolves after `stop`, rejects when the connection is lost or the server ends it. */
  readonly ended: Promise<void>;
  pause(): void;
  resume(): void;
  /** Everything before this position is durable. A smaller position than before is ignored. */
  confirm(lsn: bigint): void;
  stop(): Promise<void>;
}

/** Parts of `pg` that its types do not declare. */
interface Connection {
  readonly stream: { pause(): void; resume(): void; destroy(): void; readonly writable: boolean };
  on(event: 'copyData', listener: (message: { chunk: Buffer }) => void): void;
  once(event: 'replicationStart', listener: () => void): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

const KEEPALIVE = 0x6b; // k
const LOG_DATA = 0x77; // w
const STATUS = 0x72; // r
const LOG_DATA_HEADER_BYTES = 25; // letter, start, end, time
const POSTGRES_EPOCH_MICROS = 946_684_800_000_000n;
/** A server that does not answer this many statuses is gone, even if TCP has not noticed. */
const UNANSWERED_STATUSES = 6;
const CLOSE_TIMEOUT_MS = 1000;

export async function startReplication(options: ReplicationOptions): Promise<ReplicationStream> {
  const client = new pg.Client({
    connectionString: options.connectionString,
    application_name: 'posthorn relay',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    replication: 'database',
  } as pg.ClientConfig);
  // Without a listener a lost connection would end the process. `ended` reports it.
  client.on('error', () => {});
  await client.connect();
  const { connection } = client as unknown as { connection: Connection };
  try {
    // Values arrive as text. Make it independent of the server's defaults.
    await client.query("set client_encoding = 'UTF8'");
    await client.query("set datestyle = 'ISO'");
    await client.query("set timezone = 'UTC'");
    return await begin(client, connection, options);
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

async function begin(
  client: pg.Client,
  connection: Connection,
  options: ReplicationOptions,
): Promise<ReplicationStream> {
  const pluginOptions = Object.entries(options.pluginOptions).map(
    ([name, value]) => `${pg.escapeIdentifier(name)} ${pg.escapeLiteral(value)}`,
  );
  const stream = new PostgresReplicationStream(connection, options);
  const started = new Promise<void>((resolve) => connection.once('replicationStart', resolve));
  const running = client
    .query(
      `START_REPLICATION SLOT ${pg.escapeIdentifier(options.slot)} LOGICAL 0/0 (${pluginOptions.join(', ')})`,
    )
    .then(() => {});
  running.catch(() => {});
  await Promise.race([started, running]);
  stream.start(running, () => client.end().catch(() => {}));
  return stream;
}

class PostgresReplicationStream implements ReplicationStream {
  ended: Promise<void> = Promise.resolve();
  readonly #connection: Connection;
  readonly #options: ReplicationOptions;
  #confirmed = 0n;
  #received = 0n;
  #unanswered = 0;
  #isPaused = false;
  #isStopping = false;

  constructor(connection: Connection, options: ReplicationOptions) {
    this.#connection = connection;
    this.#options = options;
    connection.on('copyData', ({ chunk }) => this.#receive(chunk));
  }

  start(running: Promise<void>, close: () => Promise<void>): void {
    this.ended = this.#waitForEnd(running, close);
    this.ended.catch(() => {});
  }

  async #waitForEnd(running: Promise<void>, close: () => Promise<void>): Promise<void> {
    const timer = setInterval(() => this.#checkServer(), this.#options.statusMs);
    timer.unref();
    try {
      await running;
      if (!this.#isStopping) throw new Error('The server ended the replication stream.');
    } catch (error) {
      // An error while stopping is expected.
      if (!this.#isStopping) throw error;
    } finally {
      clearInterval(timer);
      await close();
    }
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#connection.stream.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#unanswered = 0;
    this.#connection.stream.resume();
  }

  confirm(lsn: bigint): void {
    if (lsn <= this.#confirmed) return;
    this.#confirmed = lsn;
    this.#sendStatus(false);
  }

  async stop(): Promise<void> {
    const { stream } = this.#connection;
    if (!this.#isStopping) {
      this.#isStopping = true;
      stream.resume();
      this.#sendStatus(false);
      if (stream.writable) this.#connection.endCopyFrom();
    }
    const timeout = setTimeout(() => stream.destroy(), CLOSE_TIMEOUT_MS);
    await this.ended;
    clearTimeout(timeout);
  }

  #receive(chunk: Buffer): void {
    this.#unanswered = 0;
    if (this.#isStopping) return;
    if (chunk[0] === LOG_DATA) {
      this.#received = max(this.#received, chunk.readBigUInt64BE(1));
      this.#options.onData(chunk.subarray(LOG_DATA_HEADER_BYTES));
    } else if (chunk[0] === KEEPALIVE) {
      const end = chunk.readBigUInt64BE(1);
      this.#received = max(this.#received, end);
      this.#options.onCaughtUp(end);
      if (chunk[17] === 1) this.#sendStatus(false);
    }
  }

  #checkServer(): void {
    if (!this.#isPaused && this.#unanswered >= UNANSWERED_STATUSES) {
      this.#connection.stream.destroy();
      return;
    }
    this.#unanswered += 1;
    this.#sendStatus(!this.#isPaused);
  }

  #sendStatus(wantsAnswer: boolean): void {
    if (!this.#connection.stream.writable) return;
    this.#connection.sendCopyFromChunk(statusMessage(this.#received, this.#confirmed, wantsAnswer));
  }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);

function statusMessage(received: bigint, confirmed: bigint, wantsAnswer: boolean): Buffer {
  const message = Buffer.alloc(34);
  message[0] = STATUS;
  message.writeBigUInt64BE(max(received, confirmed), 1); // written
  message.writeBigUInt64BE(confirmed, 9); // flushed: this one moves the slot
  message.writeBigUInt64BE(confirmed, 17); // applied
  message.writeBigInt64BE(BigInt(Date.now()) * 1000n - POSTGRES_EPOCH_MICROS, 25);
  message[33] = wantsAnswer ? 1 : 0;
  return message;
}

/** Formats a position in the log as PostgreSQL does: `16/B374D848`. */
export function showLsn(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffff_ffffn).toString(16).toUpperCase()}`;
}
