/**
 * Drops partitions whose retention has ended, oldest first. Rows that are still needed move to a small replacement, which
 * takes over the range of the partition (docs/adr/0017-retention.md).
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import {
  cutoffOf,
  type PartitionedTable,
  partitionedTables,
  type RetentionDays,
} from '../domain/retention.ts';
import type { Partition, PartitionDropper, PartitionReplacement } from '../ports/retention-store.ts';
import { halvingChunks } from './halving-chunks.ts';

export interface DropPartitionsOptions {
  readonly store: PartitionDropper;
  readonly clock: Clock;
  readonly days: Pick<RetentionDays, PartitionedTable>;
  /**
   * Called before a partition is replaced, while all of its rows can still be read. If it returns false or throws, the
   * partition stays, and is offered again in the next round. An archive writes and verifies its copy here.
   */
  readonly beforeDrop?: ((partition: Partition) => Promise<boolean>) | undefined;
  readonly onDropped: (names: readonly string[]) => void;
  /** Called before each step. Tests kill the process here. */
  readonly onStep?: ((step: DropStep) => void) | undefined;
}

export type DropStep = 'before_drop' | 'prepare' | 'copy' | 'copied' | 'swap' | 'drop';

const ROWS_PER_COPY = 5_000;
/**
 * A try of a step blocks all statements on the table for up to 50 ms. The pause after it lets them catch up. If a transaction
 * keeps the table locked, the next round tries again.
 */
const MAX_TRIES = 10;
const PAUSE_BETWEEN_TRIES_MS = 500;

export class PartitionDrops {
  readonly #options: DropPartitionsOptions;

  constructor(options: DropPartitionsOptions) {
    this.#options = options;
  }

  /** Runs one round. Resolves when no partition is left to drop, or the rest must wait. */
  async run(isStopped: () => boolean): Promise<void> {
    const { store, clock, days } = this.#options;
    await this.#dropDetached();
    for (const table of partitionedTables) {
      const cutoffMs = cutoffOf(days[table], clock.now());
      const unfinished = await store.findReplacement(table);
      if (unfinished !== null && !(await this.#replace(unfinished, isStopped))) continue;
      while (cutoffMs !== null && !isStopped()) {
        const partition = await store.findExpired(table, cutoffMs);
        if (partition === null || !(await this.#mayDrop(partition))) break;
        const replacement = await this.#tryStep('prepare', isStopped, () =>
          store.prepare(partition, cutoffMs),
        );
        if (replacement === null || !(await this.#replace(replacement, isStopped))) break;
      }
      if (cutoffMs !== null && !isStopped()) await store.cleanReplacements(table, cutoffMs, isStopped);
    }
  }

  async #mayDrop(partition: Partition): Promise<boolean> {
    const { beforeDrop, onStep } = this.#options;
    onStep?.('before_drop');
    return beforeDrop === undefined || beforeDrop(partition);
  }

  /** Returns false if the replacement is not in place yet. */
  async #replace(replacement: PartitionReplacement, isStopped: () => boolean): Promise<boolean> {
    const { store, onStep } = this.#options;
    if (!replacement.isCopied) {
      const inChunk = halvingChunks(ROWS_PER_COPY, isStopped);
      let after: Uuid | null = null;
      do {
        if (isStopped()) return false;
        onStep?.('copy');
        const from: Uuid | null = after;
        after = await inChunk((max) => store.copy(replacement, from, max));
      } while (after !== null);
      onStep?.('copied');
    }
    const isSwapped = await this.#tryStep(
      'swap',
      isStopped,
      async () => (await store.swap(replacement)) || null,
    );
    if (isSwapped === null) return false;
    await this.#dropDetached();
    return true;
  }

  /** Runs a step that needs a lock until it returns a result. Returns null if it gets no lock in any of its tries. */
  async #tryStep<T>(
    name: DropStep,
    isStopped: () => boolean,
    step: () => Promise<T | null>,
  ): Promise<T | null> {
    for (let tries = 0; tries < MAX_TRIES && !isStopped(); tries += 1) {
      this.#options.onStep?.(name);
      const result = await step();
      if (result !== null) return result;
      await this.#pause();
    }
    return null;
  }

  async #dropDetached(): Promise<void> {
    const { store, onDropped, onStep } = this.#options;
    onStep?.('drop');
    const dropped = await store.dropDetached();
    if (dropped.length > 0) onDropped(dropped);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(PAUSE_BETWEEN_TRIES_MS, resolve));
  }
}
