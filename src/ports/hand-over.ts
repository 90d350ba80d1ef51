/**
 * Hands deliveries that this process has just committed over to the sibling that owns their shard, payload included, so
 * that the owner can send them without reading the store. Best effort: all these deliveries are durable already, and a
 * sweep of the owner finds those that are lost on the way.
 */
import type { EventContent } from '../domain/event.ts';
import type { NewDelivery } from './accept-log.ts';

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

export interface HandOver {
  /** Returns false if no reachable process owns the delivery's shard: notify the owner instead. */
  offer(delivery: NewDelivery, event: EventContent, commit: Commit): boolean;

  /** Tells the other processes which shards this one owns now. */
  announceShards(): void;

  /** Calls `handler` with deliveries that siblings hand over to this process. */
  onReceived(handler: (deliveries: readonly CommittedDelivery[], commit: Commit) => void): void;

  /** `ownedShards` returns the shards that this process owns at the moment and will keep. */
  start(ownedShards: () => readonly number[]): Promise<void>;
  stop(): Promise<void>;
}
