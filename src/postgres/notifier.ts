/**
 * LISTEN and NOTIFY. One connection listens; messages are sent on others, after the commits that they announce (a
 * NOTIFY inside every commit would serialize all commits).
 *
 *   connecting ──▶ listening ──connection lost──▶ waiting ──▶ connecting
 *                      └── onReconnected: subscribers look for what they missed
 */
import type { Clock } from '../domain/clock.ts';
import type { Channel, Channels, Notifier } from '../ports/notifier.ts';
import type { Client, Database } from './database.ts';
import { CHANNEL_NAMES, decodeMessage } from './notifier-channels.ts';
import { NotifySender } from './notify-sender.ts';

export interface PostgresNotifierOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

const RECONNECT_MS = 200;
/** How often to check the connection: one that was cut without notice is as silent as one without messages. */
const CHECK_MS = 2_000;

type Handler = (message: never) => void;

export class PostgresNotifier implements Notifier {
  readonly #options: PostgresNotifierOptions;
  readonly #handlers = new Map<Channel, Set<Handler>>();
  readonly #reconnectHandlers: (() => void)[] = [];
  readonly #sender: NotifySender;
  /** The sender of live tails, which may have many messages. A wake thus waits for at most one of their statements. */
  readonly #tailSender: NotifySender;
  #client: Client | null = null;
  #connecting: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  #lastCommand: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: PostgresNotifierOptions) {
    this.#options = options;
    const onFailed = (error: unknown): void => options.onProblem('notify other processes', error);
    const pool = options.database.pool('notify');
    this.#sender = new NotifySender(pool, onFailed);
    this.#tailSender = new NotifySender(pool, onFailed);
  }

  get isConnected(): boolean {
    return this.#client !== null;
  }

  publish<C extends Channel>(channel: C, messages: readonly Channels[C][]): void {
    const sender = channel === 'tail' || channel === 'tailInterest' ? this.#tailSender : this.#sender;
    if (channel === 'tail' && sender.isSending) return;
    for (const message of messages) sender.add(channel, message);
  }

  subscribe<C extends Channel>(channel: C, handler: (message: Channels[C]) => void): () => void {
    let handlers = this.#handlers.get(channel);
    if (handlers === undefined) {
      handlers = new Set();
      this.#handlers.set(channel, handlers);
      this.#runCommand(`listen ${CHANNEL_NAMES[channel]}`);
    }
    handlers.add(handler as Handler);
    return () => {
      handlers.delete(handler as Handler);
      if (handlers.size > 0 || this.#handlers.get(channel) !== handlers) return;
      this.#handlers.delete(channel);
      this.#runCommand(`unlisten ${CHANNEL_NAMES[channel]}`);
    };
  }

  onReconnected(handler: () => void): void {
    this.#reconnectHandlers.push(handler);
  }

  async flush(): Promise<void> {
    await Promise.all([this.#sender.flush(), this.#tailSender.flush(), this.#lastCommand]);
  }

  start(): Promise<void> {
    this.#connecting ??= this.#connectUntilConnected().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#disconnect();
    await this.flush();
  }

  async #connectUntilConnected(): Promise<void> {
    while (this.#client === null && !this.#isStopped) await this.#tryToConnect();
  }

  async #tryToConnect(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      this.#options.onProblem('listen for messages of other processes', error);
      await new Promise<void>((resolve) => this.#options.clock.after(RECONNECT_MS, resolve));
    }
  }

  async #connect(): Promise<void> {
    const client = await this.#options.database.pool('listen').connect();
    try {
      client.on('notification', ({ channel, payload }) => this.#receive(channel, payload ?? ''));
      client.on('error', (error) => this.#onLost(client, error));
      for (const channel of this.#handlers.keys()) await client.query(`listen ${CHANNEL_NAMES[channel]}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#isStopped) return client.release(true);
    this.#client = client;
    this.#checkLater(client);
    for (const handler of this.#reconnectHandlers) handler();
  }

  #onLost(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    this.#options.onProblem('listen for messages of other processes', error);
    this.#disconnect();
    void this.start();
  }

  #checkLater(client: Client): void {
    this.#cancelTimer = this.#options.clock.after(CHECK_MS, () => {
      if (this.#client !== client) return;
      client.query('select 1').then(
        () => this.#client === client && this.#checkLater(client),
        (error) => this.#onLost(client, error),
      );
    });
  }

  #disconnect(): void {
    const client = this.#client;
    this.#client = null;
    client?.removeAllListeners('notification');
    client?.release(true);
  }

  /** Listens to a channel or stops listening, while connected. After a failure the notifier connects again. */
  #runCommand(statement: string): void {
    const client = this.#client;
    if (client === null) return;
    this.#lastCommand = client.query(statement).then(
      () => {},
      (error) => this.#onLost(client, error),
    );
  }

  #receive(name: string, payload: string): void {
    for (const [channel, handlers] of this.#handlers) {
      if (CHANNEL_NAMES[channel] !== name) continue;
      for (const handler of [...handlers]) this.#handle(channel, payload, handler);
    }
  }

  /** Every role of the database can send any message: one that a handler cannot take must not end the process. */
  #handle(channel: Channel, payload: string, handler: Handler): void {
    try {
      handler(decodeMessage(channel, payload) as never);
    } catch (error) {
      this.#options.onProblem(`handle a message on channel ${channel}`, error);
    }
  }
}
