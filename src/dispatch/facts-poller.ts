/**
 * Reads the `StoreFacts` regularly in a process that owns no shards. A worker gets them with each renewal of its
 * lease.
 */
import type { Clock } from '../domain/clock.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { OwnershipStore, StoreFacts } from '../ports/ownership-store.ts';

export interface FactsPollerOptions {
  readonly store: Pick<OwnershipStore, 'readFacts'>;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly listener: { onFacts(facts: StoreFacts, roundTripMs: number): void };
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Without an accepted event for this time, the poller reads less often. Notifications still report changes of endpoints. */
const IDLE_AFTER_MS = 10_000;
const IDLE_FACTOR = 3;

export class FactsPoller implements Service {
  readonly #options: FactsPollerOptions;
  #lastSeq = Number.NaN;
  /** When the poller first read this acceptance number. */
  #lastSeqAt = 0;
  #cancelTimer: (() => void) | null = null;
  #reading: Promise<void> | null = null;
  #isStopped = false;

  constructor(options: FactsPollerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#reading !== null || this.#cancelTimer !== null || this.#isStopped) return;
    this.#reading = this.#read();
    await this.#reading;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { store, clock, everyMs, listener, onProblem } = this.#options;
    const sentAt = clock.monotonic();
    let pauseMs = everyMs;
    try {
      const facts = await store.readFacts();
      if (facts.lastSeq !== this.#lastSeq) this.#lastSeqAt = sentAt;
      this.#lastSeq = facts.lastSeq;
      if (sentAt - this.#lastSeqAt > IDLE_AFTER_MS) pauseMs = everyMs * IDLE_FACTOR;
      listener.onFacts(facts, clock.monotonic() - sentAt);
    } catch (error) {
      onProblem('read the version of the endpoints', error);
    }
    if (this.#isStopped) return;
    this.#cancelTimer = clock.after(pauseMs, () => {
      this.#reading = this.#read();
    });
  }
}
