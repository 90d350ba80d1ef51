/**
 * A cache of all endpoints of the deployment, as of one version. The accept stage matches events against it. It cannot
 * cause wrong matches: `EventStore.append` refuses a batch that was matched against old endpoints of its tenants.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EndpointTotals } from '../domain/endpoint-index.ts';
import type { Uuid } from '../domain/ids.ts';

export interface EndpointDirectory {
  readonly version: number;
  /** How often changed endpoints were read from the store. */
  readonly reads: number;
  get(id: Uuid): Endpoint | undefined;
  /** All endpoints. There may be a million, so a loop over them must yield to the event loop. */
  all(): Iterable<Endpoint>;
  ofShard(shard: number): Iterable<Endpoint>;
  /** Endpoints that are not deleted and subscribe to operational events, and notifiers. */
  operational(): Iterable<Endpoint>;
  /** Endpoints that are not deleted and whose URL has the token of the inbox. */
  atInbox(token: string): Iterable<Endpoint>;
  /** Counts the endpoints of the tenant. Null: of all tenants. */
  totalsOf(tenant: string | null): EndpointTotals;
  totalsOfShard(shard: number): EndpointTotals;
  /** Reads the changed endpoints. Resolves after a read that started after this call. */
  refresh(): Promise<void>;
  /** Calls `listener` after a refresh with every endpoint that is new or changed. */
  onChange(listener: (changed: readonly Endpoint[]) => void): void;
  /**
   * Calls `listener` after a refresh that found a store with another history: it was restored to an earlier time, or a
   * standby that was behind took its place. All endpoints were read again.
   */
  onReplaced(listener: () => void): void;
  /** Drops a deleted endpoint that has no deliveries left. A directory with many deleted endpoints also drops them by itself. */
  forget(id: Uuid): void;
}
