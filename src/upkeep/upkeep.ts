import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
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
    Pick<ExpireRowsOptions, 'onDeadLettersExpired' | 'onProblem'> {
  readonly store: UpkeepStore;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly retention: RetentionStore;
  readonly days: RetentionDays;
  readonly skippedPerEndpoint: number;
  readonly skippedRetentionMs: number;
  readonly minuteStatisticsMs: number;
  readonly autoDisable: AutoDisableOptions;
  /** Called after partitions were dropped, or stayed because they are not archived. Must not wait for the archive. */
  readonly startArchive?: (() => Promise<void>) | undefined;
  /** Compares the clock with the store's. False: the clock jumped lately and may be wrong. */
  readonly checkClock: () => Promise<boolean>;
  /** Called when upkeep begins (true) and ends (false) to leave out what depends on the age of data. */
  readonly onPaused: (isPaused: boolean) => void;
  readonly onDisabled: (endpoints: readonly DisabledEndpoint[]) => void;
}

const SEAL_BATCH = 500;
/** The limit per round. The rest waits for the next round, so that other upkeep gets its turn. */
const SEAL_BATCHES = 200;

const REDACT_BATCH = 500;
const REDACT_BATCHES = 100;

/** Background work that no event waits for. One process at a time runs it; running it twice is harmless. */
export class Upkeep extends Recurring {
  readonly #options: UpkeepOptions;
  #isPaused = false;
  readonly #tenantPositions = new Map<string, Uuid>();

  constructor(options: UpkeepOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { store, retention, clock } = this.#options;
    const ofRetention = { ...this.#options, store: retention, tenantPositions: this.#tenantPositions };
    // Also ends a round in which the clock jumps.
    const isStopped = (): boolean => this.isStopped || clock.isSteady === false;
    await this.#attempt('run upkeep', async () => {
      await store.runExclusively(async () => {
        // Run them one after the other. If one fails, the others still run.
        await this.#attempt('create partitions ahead of time', () => store.ensurePartitions());
        await this.#attempt('seal headers in plain text', () => this.#sealHeaders());
        await this.#attempt('redact headers of old attempts', () => this.#redactAttempts());
        await this.#attemptByAge('disable endpoints that fail', () => this.#disableEndpoints());
        await this.#attemptByAge('delete expired data', () => deleteExpired(this.#options, isStopped));
        await this.#attempt('expunge what was restored', () => store.applyTombstones(clock.now()));
        await this.#attemptByAge('delete expired rows', () => expireRows(ofRetention, isStopped));
        await this.#attemptByAge('drop expired partitions', () =>
          new PartitionDrops(ofRetention).run(isStopped),
        );
        await this.#attempt('start the archive', async () => this.#options.startArchive?.());
      });
    });
  }

  /**
   * Seals headers that earlier versions stored in plain text. Servers need no notification: the headers in their
   * memory do not change.
   */
  async #sealHeaders(): Promise<void> {
    const { store } = this.#options;
    for (let batches = 0; batches < SEAL_BATCHES && !this.isStopped; batches += 1)
      if ((await store.sealPlainHeaders(SEAL_BATCH)) < SEAL_BATCH) return;
  }

  async #redactAttempts(): Promise<void> {
    const { store } = this.#options;
    for (let batches = 0; batches < REDACT_BATCHES && !this.isStopped; batches += 1)
      if (!(await store.redactOldAttempts(REDACT_BATCH))) return;
  }

  async #disableEndpoints(): Promise<void> {
    const disabled = await autoDisable(this.#options.store, this.#options.autoDisable);
    if (disabled.length > 0) this.#options.onDisabled(disabled);
  }

  /** Does nothing while the clock may be wrong: deleted data could not be restored. */
  async #attemptByAge(what: string, work: () => Promise<void>): Promise<void> {
    await this.#attempt(what, async () => {
      const isPaused = !(await this.#options.checkClock());
      if (isPaused !== this.#isPaused) this.#options.onPaused(isPaused);
      this.#isPaused = isPaused;
      if (!isPaused) await work();
    });
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
