/**
 * Detects that the store has another history than the one that this process has seen: it was restored to an earlier
 * time, or a standby took the place of its primary. The store may then lack what this process holds in memory.
 *
 *   version of the endpoints unknown to the store    certain, found at the next refresh, also after an import of a dump
 *   the store lacks the last renewal of a worker     certain; after a crash of the database perhaps only renewals are lost
 *   another timeline after a reconnect               a failover or recovery; whether something was lost is not known
 */
import type { Clock } from '../domain/clock.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { OwnershipStore } from '../ports/ownership-store.ts';

/**
 * `restored`: the store lacks changes of endpoints that this process has read. `rewound`: the store lacks a renewal
 * that a worker had recorded. `failover`: the timeline changed.
 */
export type HistoryChange = 'restored' | 'rewound' | 'failover';

export interface StoreHistoryOptions {
  readonly store: Pick<OwnershipStore, 'readTimeline'>;
  readonly endpoints: Pick<EndpointDirectory, 'onReplaced'>;
  readonly clock: Clock;
  readonly onChanged: (change: HistoryChange) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

const RETRY_MS = 1000;

export class StoreHistory {
  readonly #options: StoreHistoryOptions;
  /** Null: not known. */
  #timeline: string | null = null;
  #cancelRetry: (() => void) | null = null;
  #isStopped = false;

  constructor(options: StoreHistoryOptions) {
    this.#options = options;
    options.endpoints.onReplaced(() => options.onChanged('restored'));
  }

  /** Call it at the start and after each reconnect: a failover breaks every connection. Does not throw. */
  async checkTimeline(): Promise<void> {
    const { store, clock, onChanged, onProblem } = this.#options;
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    try {
      const timeline = await store.readTimeline();
      if (timeline === null) return;
      const isChanged = this.#timeline !== null && this.#timeline !== timeline;
      this.#timeline = timeline;
      if (isChanged) onChanged('failover');
    } catch (error) {
      onProblem('read the timeline of the database', error);
      if (!this.#isStopped) this.#cancelRetry = clock.after(RETRY_MS, () => void this.checkTimeline());
    }
  }

  /** Call this when a worker found its row in the store older than its last renewal. */
  reportRewound(): void {
    this.#options.onChanged('rewound');
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#cancelRetry = null;
  }
}
