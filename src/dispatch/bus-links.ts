/**
 * Reaches processes of other nodes through a message bus, where the nodes cannot connect to each other.
 *
 *   channel `shards`   all processes announce their shards there, and all subscribe
 *   channel `to.ID`    deliveries for the process ID, which alone subscribes
 *
 * A frame that nobody received, or that was not confirmed in time, is reported as lost.
 */
import type { Uuid } from '../domain/ids.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import { FrameReader, type PeerMessage } from './peer-frames.ts';

const SHARDS = 'shards';
const channelOf = (id: Uuid): string => `to.${id}`;

export class BusLinks {
  readonly #bus: MessageBus;
  #unsubscribe: (() => void)[] = [];

  constructor(bus: MessageBus) {
    this.#bus = bus;
  }

  get canSend(): boolean {
    return this.#bus.isUsable;
  }

  /** `onConnected`: other processes may not know the shards of this one. */
  start(onMessage: (from: Uuid, message: PeerMessage) => void, onConnected: () => void): void {
    const receive = (frame: Buffer, from: Uuid): void => {
      for (const message of new FrameReader().read(frame)) onMessage(from, message);
    };
    this.#unsubscribe = [
      this.#bus.subscribe(SHARDS, receive),
      this.#bus.subscribe(channelOf(this.#bus.id), receive),
    ];
    this.#bus.onConnected(onConnected);
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#unsubscribe = [];
    await this.#bus.flush();
  }

  /** Sends a frame to all processes. */
  async announce(frame: Buffer): Promise<void> {
    await this.#bus.publish(SHARDS, frame);
  }

  /** Sends a frame to one process. Resolves with false if it probably did not arrive. */
  async send(to: Uuid, frame: Buffer): Promise<boolean> {
    return (await this.#bus.publish(channelOf(to), frame)) > 0;
  }
}
