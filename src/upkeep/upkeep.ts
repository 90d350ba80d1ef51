import type { Clock } from '../domain/clock.ts';
import type { RetentionDays } from '../domain/retention.ts';
import type { RetentionStore } from '../ports/retention-store.ts';
import type { UpkeepStore } from '../ports/upkeep-store.ts';
import { type AutoDisableOptions, autoDisable, type DisabledEndpoint } from './auto-disable.ts';
import { deleteExpired } from './delete-expired.ts';
import { type DropPartitionsOptions, PartitionDrops } from './drop-partitions.ts';
import { type ExpireRowsOptions, expireRows } from './expire-rows.ts';
import { Recurring } from './recurring.ts';

export interface UpkeepOptions
  extends Pick<DropPartitionsOptions, 'beforeDrop' | 'onDropped'>,
    Pick<ExpireRowsOptions, 'onDeadLettersExpired'> {
  readonly store: UpkeepStore;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly retention: RetentionStore;
  readonly days: RetentionDays;
  readonly skippedPerEndpoint: number;
  readonly skippedRetentionMs: number;
  readonly autoDisable: AutoDisableOptions;
  readonly onDisabled: (endpoints: readonly DisabledEndpoint[]) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Background work that no event waits for. One process at a time runs it; running it twice is harmless. */
export class Upkeep extends Recurring {
  readonly #options: UpkeepOptions;

  constructor(options: UpkeepOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { store, retention } = this.#options;
    const ofRetention = { ...this.#options, store: retention };
    const isStopped = (): boolean => this.isStopped;
    await this.#attempt('run upkeep', async () => {
      await store.runExclusively(async () => {
        // One at a time: if one fails, the others still run.
        await this.#attempt('create partitions ahead of time', () => store.ensurePartitions());
        await this.#attempt('disable endpoints that fail', () => this.#disableEndpoints());
        await this.#attempt('delete expired data', () => deleteExpired(this.#options, isStopped));
        await this.#attempt('delete expired rows', () => expireRows(ofRetention, isStopped));
        await this.#attempt('drop expired partitions', () => new PartitionDrops(ofRetention).run(isStopped));
      });
    });
  }

  async #disableEndpoints(): Promise<void> {
    const disabled = await autoDisable(this.#options.store, this.#options.autoDisable);
    if (disabled.length > 0) this.#options.onDisabled(disabled);
  }

  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    if (this.isStopped) return;
    try {
      await work();
    } catch (error) {
      this.#options.onProblem(what, error);
    }
  }
}
