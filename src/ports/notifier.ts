/**
 * Messages between all processes of a deployment. Delivery is best effort: a message may be lost when a connection
 * breaks, so every subscriber must also be able to find what it missed. `onReconnected` says when to look for it.
 */
import type { Uuid } from '../domain/ids.ts';

/** How far back the owner of a lane looks for deliveries: just committed, or possibly missed for a while. */
export type WakeScope = 'recent' | 'sweep';

export interface Channels {
  /** Deliveries were committed for these endpoints: their owner should load them. */
  readonly wake: { readonly endpointIds: readonly Uuid[]; readonly scope: WakeScope };
  /** A probe was requested: the owner of the endpoint should load and send it. */
  readonly probes: null;
  /** Shards were freed: another worker can take them. */
  readonly shards: null;
  /** An endpoint was created, changed or deleted. */
  readonly endpoints: null;
  /** An API key was revoked. */
  readonly keys: null;
  /** A task was created. */
  readonly tasks: null;
  /** A tenant was changed or deleted. */
  readonly tenants: null;
  /** An event type or one of its versions was changed or deleted. */
  readonly catalogue: null;
  /** The payload of this event was deleted on request: nothing may send it any more. */
  readonly expunged: Uuid;
  /** A process announces which live tails its clients watch. */
  readonly tailInterest: string;
  /** Messages for live tails. Only processes with an open live tail subscribe. */
  readonly tail: string;
}

export type Channel = keyof Channels;

export interface Notifier {
  /**
   * Sends messages to every subscribed process, this one included. Never throws and never blocks the caller: failures
   * are reported to the log. Messages of `tail` are dropped while earlier ones are still being sent.
   */
  publish<C extends Channel>(channel: C, messages: readonly Channels[C][]): void;

  /**
   * Calls `handler` for every message. A handler that throws is reported and stops nothing. Returns a function that ends
   * the subscription.
   */
  subscribe<C extends Channel>(channel: C, handler: (message: Channels[C]) => void): () => void;

  /** Calls `handler` each time the connection is established: messages may have been lost before. */
  onReconnected(handler: () => void): void;

  readonly isConnected: boolean;

  /** Resolves when every message published so far was sent or failed, and new subscriptions receive messages. */
  flush(): Promise<void>;

  /** Resolves when all subscriptions made so far receive messages. */
  start(): Promise<void>;
  stop(): Promise<void>;
}
