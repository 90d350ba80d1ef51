import type { Ingest } from './create-ingest.ts';
import type { Clock } from './domain/clock.ts';
import type { Service } from './domain/lifecycle.ts';
import type { Notifier } from './ports/notifier.ts';

export interface TenantSyncOptions {
  readonly ingest: Pick<Ingest, 'reloadTenantLimits' | 'onTenantsChanged'>;
  readonly notifier: Pick<Notifier, 'subscribe' | 'onReconnected'>;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Reload regularly, to find changes whose notification was lost. */
const RELOAD_MS = 10_000;

/** Keeps the rate limits of tenants and the cache of known tenants up to date. */
export class TenantSync implements Service {
  readonly #options: TenantSyncOptions;
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;

  constructor(options: TenantSyncOptions) {
    this.#options = options;
    options.notifier.subscribe('tenants', () => this.#onTenantsChanged());
    options.notifier.onReconnected(() => this.#onTenantsChanged());
  }

  async start(): Promise<void> {
    await this.#options.ingest.reloadTenantLimits();
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #onTenantsChanged(): void {
    void this.#reportFailure(this.#options.ingest.onTenantsChanged());
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#options.clock.after(RELOAD_MS, () => {
      void this.#reportFailure(this.#options.ingest.reloadTenantLimits());
      this.#schedule();
    });
  }

  #reportFailure(reload: Promise<void>): Promise<void> {
    return reload.catch((error) => this.#options.onProblem('read the limits of tenants', error));
  }
}
