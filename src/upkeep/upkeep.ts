import type { Clock } from '../domain/clock.ts';
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import { aloneInUpkeep } from '../postgres/queries/upkeep.ts';
import { type AutoDisableOptions, autoDisable } from './auto-disable.ts';
import { type ClearAwayOptions, clearAway } from './clear-away.ts';
import { Recurring } from './recurring.ts';

/** Chores that are not on the way of any event: done now and then, by one process at a time, harmless if done twice. */
export interface UpkeepOptions extends ClearAwayOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly makePartitions: () => Promise<void>;
  readonly autoDisable: AutoDisableOptions;
  /** Endpoints were switched off. */
  readonly disabled: (endpoints: readonly { id: Uuid; reason: DisabledReason }[]) => void;
  readonly problem: (what: string, error: unknown) => void;
}

export class Upkeep extends Recurring {
  readonly #options: UpkeepOptions;

  constructor(options: UpkeepOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { pool, makePartitions } = this.#options;
    // Each by itself: one that fails does not keep the others from being done.
    await this.#chore('keep house', async () => {
      await aloneInUpkeep(pool, async () => {
        await this.#chore('make partitions ahead of time', makePartitions);
        await this.#chore('disable endpoints that fail', async () => {
          const disabled = await autoDisable(pool, this.#options.autoDisable);
          if (disabled.length > 0) this.#options.disabled(disabled);
        });
        await this.#chore('clear away what has expired', () => clearAway(this.#options, () => this.stopped));
      });
    });
  }

  async #chore(what: string, work: () => Promise<void>): Promise<void> {
    if (this.stopped) return;
    try {
      await work();
    } catch (error) {
      this.#options.problem(what, error);
    }
  }
}
