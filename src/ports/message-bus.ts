/**
 * Messages between the processes of a deployment through a server beside the database (Redis). Best effort: messages
 * are lost with the server or with a connection to it. No call waits for the server: while it is unavailable, every
 * call returns at once and says so, and the caller uses another way.
 */
import type { Uuid } from '../domain/ids.ts';

export interface MessageBus {
  /** Identifies this process among the senders of messages. */
  readonly id: Uuid;

  /** False while the server is unavailable or slow, or has not confirmed too many bytes: use another way. */
  readonly isUsable: boolean;

  /**
   * Sends a message to all processes that subscribe to the channel. Resolves with their number, and with 0 also if the
   * server did not confirm the message in time, although it may still arrive. Never rejects.
   */
  publish(channel: string, message: Buffer): Promise<number>;

  /**
   * Calls `handler` for every message of another process, also after the connection was lost and established again. A
   * process may subscribe once to each channel. A handler that throws is reported and stops nothing. Returns a function
   * that ends the subscription.
   */
  subscribe(channel: string, handler: (message: Buffer, from: Uuid) => void): () => void;

  /** Calls `handler` each time the connection is established and all subscriptions work. */
  onConnected(handler: () => void): void;

  /** Resolves when the subscriptions made so far receive messages, or when the server is unavailable. */
  flush(): Promise<void>;
}
