/**
 * A cache of all endpoints of the deployment, as of one version. The accept stage matches events against it. It cannot
 * cause wrong matches: `AcceptLog.append` refuses a batch that was matched against an old version.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';

export interface EndpointDirectory {
  readonly version: number;
  /** How often changed endpoints were read from the store. */
  readonly reads: number;
  get(id: Uuid): Endpoint | undefined;
  all(): Iterable<Endpoint>;
  /** Reads the changed endpoints. Resolves after a read that started after this call. */
  refresh(): Promise<void>;
  /** Calls `listener` after a refresh with every endpoint that is new or changed. */
  onChange(listener: (changed: readonly Endpoint[]) => void): void;
  /**
   * Calls `listener` after a refresh that found a store with another history: it was restored to an earlier time, or a
   * standby that was behind took its place. All endpoints were read again.
   */
  onReplaced(listener: () => void): void;
  /** Drops a deleted endpoint that has no deliveries left. */
  forget(id: Uuid): void;
}
