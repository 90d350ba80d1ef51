/** Passes the `StoreFacts` to the parts that need them: clock, acceptance number, version of the endpoints. */
import type { DatabaseClock } from '../domain/clock.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { StoreFacts } from '../ports/ownership-store.ts';
import type { Refill } from './refill.ts';
import type { Scheduler } from './scheduler.ts';

interface FactsListenerOptions {
  readonly clock: DatabaseClock;
  readonly endpoints: EndpointDirectory;
  readonly refill: Refill;
  readonly scheduler: Scheduler;
  readonly observer: {
    /** Called when the endpoints in memory have the same version as those in the store. */
    onEndpointsConfirmed(): void;
  };
  readonly onProblem: (what: string, error: unknown) => void;
}

export class FactsListener {
  readonly #options: FactsListenerOptions;
  readonly #others: ((facts: StoreFacts) => void)[] = [];

  constructor(options: FactsListenerOptions) {
    this.#options = options;
  }

  /** Passes the facts to a part outside of the engine, too. */
  addListener(listener: (facts: StoreFacts) => void): void {
    this.#others.push(listener);
  }

  onFacts(facts: StoreFacts, roundTripMs: number): void {
    const { now, lastSeq, endpointVersion } = facts;
    const { clock, endpoints, refill, scheduler, observer } = this.#options;
    clock.correct(now, roundTripMs);
    refill.markSeq(lastSeq);
    // The lease may have been invalid before. Lanes that are ready can send again.
    scheduler.pumpSoon();
    if (endpointVersion === endpoints.version) observer.onEndpointsConfirmed();
    else this.refreshEndpoints();
    for (const listener of this.#others) listener(facts);
  }

  refreshEndpoints(): void {
    const { endpoints, onProblem } = this.#options;
    void endpoints.refresh().catch((error) => onProblem('read endpoints', error));
  }
}
