/**
 * Keeps a connection to Redis, and reports at any moment whether it is usable. No caller waits for Redis: without a
 * connection a command fails at once, and nothing is queued.
 *
 *   connecting ──▶ connected ──lost──▶ waiting (0.1 s, doubled up to 5 s) ──▶ connecting
 *       └ failed ─────────────────────────▲
 *
 *   connected   usable while the oldest command without an answer is younger than 250 ms and few bytes wait.
 *               A command without an answer for 500 ms fails, although Redis may still run it.
 *               No answer for 2 s (a ping is sent when there is nothing else): the connection is lost.
 *   lost        every command without an answer fails. Subscriptions stay, and are made again on the next connection.
 */
import type { Clock } from '../domain/clock.ts';
import type { Service } from '../domain/lifecycle.ts';
import { openRedisSession, type RedisSession } from './client.ts';

export interface RedisLinkOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

const CONNECT_MS = 2_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** How often to look for commands without an answer. */
const CHECK_MS = 100;
const SLOW_MS = 250;
const FAILED_MS = 500;
const LOST_MS = 2_000;
const PING_MS = 500;
/** How often to report that Redis is still unavailable. */
const REPORT_MS = 60_000;
/** Limits the memory that commands take if Redis reads slowly. */
const MAX_UNANSWERED_BYTES = 4 * 1024 * 1024;

/** There is no connection, or Redis did not answer in time. */
export class RedisUnavailableError extends Error {
  override name = 'RedisUnavailableError';
}

interface Command {
  readonly sentAt: number;
  readonly bytes: number;
  reject(error: unknown): void;
}

export type MessageHandler = (message: Buffer, channel: string) => void;

export class RedisLink implements Service {
  readonly #options: RedisLinkOptions;
  readonly #handlers = new Map<string, MessageHandler>();
  readonly #connectedHandlers: (() => void)[] = [];
  /** In the order in which they were sent, which is the order of the answers. */
  readonly #unanswered = new Set<Command>();
  #unansweredBytes = 0;
  #session: RedisSession | null = null;
  #connecting: Promise<void> | null = null;
  #lastSubscription: Promise<void> = Promise.resolve();
  #waitMs = FIRST_WAIT_MS;
  #pingedAt = Number.NEGATIVE_INFINITY;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#session !== null;
  }

  get isUsable(): boolean {
    return (
      this.#session !== null && this.#unansweredBytes <= MAX_UNANSWERED_BYTES && this.#oldestMs() <= SLOW_MS
    );
  }

  /** Begins to connect. Does not wait for Redis. */
  start(): void {
    if (this.#connecting === null && this.#session === null && !this.#isStopped) this.#connectLater(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#disconnect(new RedisUnavailableError('The process stops.'));
    await this.#connecting;
  }

  onConnected(handler: () => void): void {
    this.#connectedHandlers.push(handler);
  }

  /** Runs a command. Rejects at once if there is no connection, and after 500 ms without an answer. */
  run(args: readonly (string | Buffer)[]): Promise<unknown> {
    const session = this.#session;
    if (session === null)
      return Promise.reject(new RedisUnavailableError('There is no connection to Redis.'));
    return new Promise((resolve, reject) => {
      const bytes = args.reduce((sum, arg) => sum + arg.length, 0);
      const command: Command = { sentAt: this.#now(), bytes, reject };
      this.#unanswered.add(command);
      this.#unansweredBytes += bytes;
      session
        .run(args)
        .then(resolve, reject)
        .finally(() => this.#forget(command));
    });
  }

  /** A channel has one handler. Returns a function that ends the subscription. */
  subscribe(channel: string, handler: MessageHandler): () => void {
    if (this.#handlers.has(channel)) throw new Error(`${channel} has a handler already`);
    this.#handlers.set(channel, handler);
    this.#change((session) => session.subscribe([channel], this.#receive));
    return () => {
      if (this.#handlers.get(channel) !== handler) return;
      this.#handlers.delete(channel);
      this.#change((session) => session.unsubscribe(channel));
    };
  }

  /** Resolves when all subscriptions made so far work, or when Redis did not answer in time. */
  flush(): Promise<void> {
    return this.#lastSubscription;
  }

  /** Changes the subscriptions of the current connection. The next one starts with all of them. */
  #change(change: (session: RedisSession) => Promise<void>): void {
    const session = this.#session;
    if (session === null) return;
    this.#lastSubscription = new Promise((resolve) => {
      const command: Command = { sentAt: this.#now(), bytes: 0, reject: () => resolve() };
      this.#unanswered.add(command);
      change(session)
        .catch((error) => this.#onLost(session, error))
        .finally(() => {
          this.#forget(command);
          resolve();
        });
    });
  }

  readonly #receive: MessageHandler = (message, channel) => {
    try {
      this.#handlers.get(channel)?.(message, channel);
    } catch (error) {
      this.#options.onProblem('handle a message from Redis', error);
    }
  };

  #connectLater(delayMs: number): void {
    this.#cancelTimer = this.#options.clock.after(delayMs, () => {
      this.#connecting = this.#connect().finally(() => {
        this.#connecting = null;
      });
    });
  }

  async #connect(): Promise<void> {
    const { url } = this.#options;
    let session: RedisSession;
    try {
      session = await openRedisSession({
        url,
        connectTimeoutMs: CONNECT_MS,
        onLost: (error) => this.#onLost(session, error),
      });
    } catch (error) {
      return this.#retry(error);
    }
    if (this.#isStopped) return session.destroy();
    this.#session = session;
    this.#checkLater(session);
    const channels = [...this.#handlers.keys()];
    if (channels.length > 0) this.#change((each) => each.subscribe(channels, this.#receive));
    await this.#lastSubscription;
    if (this.#session !== session) return;
    this.#waitMs = FIRST_WAIT_MS;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    for (const handler of this.#connectedHandlers) handler();
  }

  #checkLater(session: RedisSession, wasLate = false): void {
    const dueAt = this.#now() + CHECK_MS;
    this.#cancelTimer = this.#options.clock.after(CHECK_MS, () => {
      if (this.#session !== session) return;
      // If this process was busy or paused, it may not have read all answers yet: skip this check, and decide at the
      // next one.
      const isLate = !wasLate && this.#now() - dueAt >= SLOW_MS;
      if (isLate || this.#check(session)) this.#checkLater(session, isLate);
    });
  }

  /** Returns false if the connection is lost. */
  #check(session: RedisSession): boolean {
    if (this.#oldestMs() > LOST_MS) {
      this.#onLost(session, new RedisUnavailableError('Redis does not answer.'));
      return false;
    }
    const now = this.#now();
    for (const { sentAt, reject } of this.#unanswered) {
      if (now - sentAt <= FAILED_MS) break;
      reject(new RedisUnavailableError('Redis did not answer in time.'));
    }
    if (this.#unanswered.size === 0 && now - this.#pingedAt >= PING_MS) {
      this.#pingedAt = now;
      this.run(['PING']).catch(() => {});
    }
    return true;
  }

  #onLost(session: RedisSession, error: unknown): void {
    if (this.#session !== session) return;
    this.#disconnect(error);
    this.#retry(error);
  }

  #disconnect(error: unknown): void {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    this.#cancelTimer?.();
    for (const { reject } of this.#unanswered) reject(error);
    this.#unanswered.clear();
    this.#unansweredBytes = 0;
    session.destroy();
  }

  #retry(error: unknown): void {
    if (this.#isStopped) return;
    if (this.#now() - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = this.#now();
      this.#options.onProblem('use Redis', error);
    }
    this.#connectLater(this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, LONGEST_WAIT_MS);
  }

  #forget(command: Command): void {
    if (this.#unanswered.delete(command)) this.#unansweredBytes -= command.bytes;
  }

  #oldestMs(): number {
    for (const { sentAt } of this.#unanswered) return this.#now() - sentAt;
    return 0;
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
