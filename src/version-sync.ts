import type { Clock } from './domain/clock.ts';
import type { Service } from './domain/lifecycle.ts';
import type { Notifier } from './ports/notifier.ts';
import type { VersionCache } from './postgres/version-cache.ts';

export interface VersionSyncOptions {
  readonly versions: Pick<VersionCache, 'refresh'>;
  readonly notifier: Pick<Notifier, 'subscribe' | 'onReconnected'>;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Finds changes whose notification was lost. */
const REFRESH_MS = 2_000;

/** Keeps the versions of event types in memory up to date. */
export class VersionSync implements Service {
  readonly #options: VersionSyncOptions;
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;

  constructor(options: VersionSyncOptions) {
    this.#options = options;
    options.notifier.subscribe('catalogue', () => this.#refresh());
    options.notifier.onReconnected(() => this.#refresh());
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
    const { versions, onProblem } = this.#options;
    void versions.refresh().catch((error) => onProblem('read the versions of event types', error));
  }
}
