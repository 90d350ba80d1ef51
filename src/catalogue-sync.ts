import type { EventCatalogue } from './catalogue/event-catalogue.ts';
import type { Clock } from './domain/clock.ts';
import type { Service } from './domain/lifecycle.ts';
import type { Notifier } from './ports/notifier.ts';

export interface CatalogueSyncOptions {
  readonly catalogue: Pick<EventCatalogue, 'refresh'>;
  readonly notifier: Pick<Notifier, 'subscribe' | 'onReconnected'>;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Finds changes whose notification was lost. */
const REFRESH_MS = 10_000;

/** Keeps the catalogue in memory up to date. */
export class CatalogueSync implements Service {
  readonly #options: CatalogueSyncOptions;
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;

  constructor(options: CatalogueSyncOptions) {
    this.#options = options;
    const { notifier } = options;
    notifier.subscribe('catalogue', () => this.#refresh());
    // A tenant may have a validation mode of its own.
    notifier.subscribe('tenants', () => this.#refresh());
    notifier.onReconnected(() => this.#refresh());
  }

  start(): void {
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#options.clock.after(REFRESH_MS, () => {
      this.#refresh();
      this.#schedule();
    });
  }

  #refresh(): void {
    if (this.#isStopped) return;
    void this.#options.catalogue
      .refresh()
      .catch((error) => this.#options.onProblem('read the catalogue', error));
  }
}
