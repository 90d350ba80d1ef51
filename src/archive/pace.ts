/**
 * Divides the time of an export into work and rests, so that events keep most of the machine. The low priority of the process is
 * not enough: its connection to PostgreSQL has the usual priority, and both share memory, caches and disks with the servers.
 *
 *   working ──rest()──▶ resting ──time is over──▶ working    work is at most `maxBusy` of the time
 *   working ──rest()──▶ working                              little was done yet, the archive is behind, or `maxBusy` is 1
 *   working or resting ──stop()──▶ stopped                   every rest() throws `ArchiveStoppedError` at once
 *
 * An export rests between two statements. It then has no transaction, snapshot or lock but the advisory lock of the archive, so a
 * rest delays neither VACUUM nor a statement of a server.
 *
 * Work is elapsed time, not processor time: on a loaded machine a step takes longer, and so does the rest after it.
 *
 * The archive is behind if a partition expired although an older one of its kind still waits for its export, or if a partition has
 * waited for a day. It then works without rests until neither is true. So an archive that is quick enough without rests never falls
 * behind by more than one partition of each kind.
 */
import type { Clock } from '../domain/clock.ts';

export interface PaceOptions {
  /** The maximum share of the time in which the export works. 1: it never rests. */
  readonly maxBusy: number;
  readonly clock: Clock;
  /** Called at most once a minute. */
  readonly isBehind?: (() => Promise<boolean>) | undefined;
  /** Called when the archive has fallen behind, and when it has caught up. */
  readonly onBehindChanged?: ((isBehind: boolean) => void) | undefined;
  /** Called before each rest. Tests kill the process here. */
  readonly onRest?: ((restMs: number) => void) | undefined;
}

/** The process was asked to stop. Not a failure: the next run continues after the last file that was recorded. */
export class ArchiveStoppedError extends Error {
  override readonly name = 'ArchiveStoppedError';
}

/** Shorter work is added to the next, so that the process does not wake up more often than necessary. */
const MIN_WORK_MS = 50;
/** The longest rest. Work may contain a long wait, such as an upload, after which no equally long rest is needed. */
const MAX_REST_MS = 10_000;
const CHECK_EVERY_MS = 60_000;

export class ExportPace {
  readonly #options: PaceOptions;
  #workingSince: number | null = null;
  #isStopped = false;
  #isBehind = false;
  #checkedAt: number | null = null;
  #endRest: () => void = () => {};

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Ends the present rest. Every later call of `rest` throws. */
  stop(): void {
    this.#isStopped = true;
    this.#endRest();
  }

  /** Rests as long as the work since the last rest requires. Throws `ArchiveStoppedError` if the process was asked to stop. */
  async rest(): Promise<void> {
    this.#throwIfStopped();
    const { maxBusy, clock, onRest } = this.#options;
    if (maxBusy >= 1) return;
    const now = clock.monotonic();
    this.#workingSince ??= now;
    const workedMs = now - this.#workingSince;
    if (workedMs < MIN_WORK_MS) return;
    if (!(await this.#checkIsBehind(now))) {
      const restMs = Math.min(MAX_REST_MS, (workedMs * (1 - maxBusy)) / maxBusy);
      onRest?.(restMs);
      await this.#wait(restMs);
      this.#throwIfStopped();
    }
    this.#workingSince = clock.monotonic();
  }

  async #checkIsBehind(now: number): Promise<boolean> {
    const { isBehind, onBehindChanged } = this.#options;
    if (isBehind === undefined) return false;
    if (this.#checkedAt !== null && now - this.#checkedAt < CHECK_EVERY_MS) return this.#isBehind;
    this.#checkedAt = now;
    const wasBehind = this.#isBehind;
    this.#isBehind = await isBehind();
    if (this.#isBehind !== wasBehind) onBehindChanged?.(this.#isBehind);
    return this.#isBehind;
  }

  #wait(restMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isStopped) return resolve();
      const cancel = this.#options.clock.after(restMs, resolve);
      this.#endRest = () => {
        cancel();
        resolve();
      };
    });
  }

  #throwIfStopped(): void {
    if (this.#isStopped) throw new ArchiveStoppedError('The archive process was asked to stop.');
  }
}
