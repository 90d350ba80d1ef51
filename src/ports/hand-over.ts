/**
 * Hands deliveries that this process has just committed over to the process that owns their shard, on this node or another,
 * payload included. So the owner can send them without reading the store. Best effort: all these deliveries are durable already, and the
 * owner's next sweep finds those that did not arrive.
 */
import type { EventContent } from '../domain/event.ts';
import type { ProcessLoad } from '../domain/load-meter.ts';
import type { NewDelivery } from './event-store.ts';

/** The commit that stored a batch of deliveries. */
export interface Commit {
  /** When the commit was sent. No process can have seen the deliveries before. */
  readonly sentAt: number;
  /** Version of the endpoints that the events were matched against. */
  readonly endpointVersion: number;
}

export interface CommittedDelivery {
  readonly delivery: NewDelivery;
  readonly event: EventContent;
}

/** `sibling`: through a connection to the process. `redis`: through a server that both processes reach. */
export type HandOverRoute = 'sibling' | 'redis';

export interface HandOver {
  /**
   * Sends the delivery to the process that owns `shard`, which the delivery's lane is in. Returns the route that it takes, or null if no reachable process
   * owns the shard: notify the owner instead.
   */
  offer(shard: number, delivery: NewDelivery, event: EventContent, commit: Commit): HandOverRoute | null;

  /** Tells the other processes which shards this one owns now. */
  announceShards(): void;

  /** Calls `handler` with deliveries that other processes hand over to this one. */
  onReceived(handler: (deliveries: readonly CommittedDelivery[], commit: Commit) => void): void;

  /** Calls `handler` with deliveries that were offered and probably did not arrive: notify their owners instead. */
  onUndelivered(handler: (deliveries: readonly CommittedDelivery[], commit: Commit) => void): void;

  /** The worst load among the other processes of this node that deliver, as they last announced it. */
  readonly siblingLoad: ProcessLoad;

  /** `ownedShards` returns the shards that this process owns at the moment and will keep. It announces them, and its load. */
  start(ownedShards: () => readonly number[], own?: { readonly load: ProcessLoad }): Promise<void>;
  stop(): Promise<void>;
}
