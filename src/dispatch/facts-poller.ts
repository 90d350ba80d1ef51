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

export class FactsPoller implements Service {
  readonly #options: FactsPollerOptions;
  #cancelTimer: (() => void) | null = null;
  #reading: Promise<void> | null = null;
  #stopped = false;

  constructor(options: FactsPollerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#reading !== null || this.#cancelTimer !== null || this.#stopped) return;
    this.#reading = this.#read();
    await this.#reading;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { store, clock, everyMs, listener, onProblem } = this.#options;
    const sentAt = clock.monotonic();
    try {
      const facts = await store.readFacts();
      listener.onFacts(facts, clock.monotonic() - sentAt);
    } catch (error) {
      onProblem('read the version of the endpoints', error);
    }
    if (this.#stopped) return;
    this.#cancelTimer = clock.after(everyMs, () => {
      this.#reading = this.#read();
    });
  }
}
