/**
 * Retries requests that wait for a lock which another transaction holds: on an idempotency key or a tenant. It runs
 * beside the shared batches, one statement at a time. Batches in which only some events are blocked go first.
 */
import type { Clock } from '../domain/clock.ts';
import { idempotencyKeyName } from '../ports/event-store.ts';
import type { KnownTenants } from './known-tenants.ts';
import type { PendingEvent } from './pending-event.ts';

export interface BlockedPathOptions {
  readonly clock: Clock;
  readonly bytesOf: (item: PendingEvent) => number;
  /** Writes the batch and answers its events, or adds them here again, halved. Does not throw. */
  readonly write: (batch: readonly PendingEvent[], mayBeStored: boolean) => Promise<void>;
}

interface BlockedBatch {
  readonly items: readonly PendingEvent[];
  readonly mayBeStored: boolean;
  readonly locks: readonly string[];
}

const RETRY_PAUSE_MS = 100;

export class BlockedPath {
  readonly #options: BlockedPathOptions;
  readonly #batches: BlockedBatch[] = [];
  readonly #singles: BlockedBatch[] = [];
  /** How many events wait, or may wait, for each lock. */
  readonly #locks = new Map<string, number>();
  #items = 0;
  #bytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: BlockedPathOptions) {
    this.#options = options;
  }

  /** Events that are not answered yet. */
  get waitingItems(): number {
    return this.#items;
  }

  get waitingBytes(): number {
    return this.#bytes;
  }

  /** True if an event waits here for this lock, or may do so. */
  isBlocked(lock: string): boolean {
    return this.#locks.has(lock);
  }

  /** Adds a batch in which at least one event is blocked, perhaps by one of `locks`. */
  addBatch(items: readonly PendingEvent[], mayBeStored: boolean, locks: readonly string[]): void {
    this.#batches.push({ items, mayBeStored, locks });
    for (const lock of locks) this.#countLock(lock, 1);
    this.#start(items);
  }

  /** Adds an event that waits for `lock`. */
  addEvent(item: PendingEvent, mayBeStored: boolean, lock: string): void {
    this.#singles.push({ items: [item], mayBeStored, locks: [lock] });
    this.#countLock(lock, 1);
    this.#start([item]);
  }

  async waitUntilIdle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  #start(items: readonly PendingEvent[]): void {
    this.#count(items, 1);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    for (;;) {
      const batch = this.#batches.shift();
      if (batch !== undefined) {
        await this.#write(batch);
        continue;
      }
      const single = this.#singles.shift();
      if (single === undefined) {
        this.#running = null;
        return;
      }
      await this.#write(single);
      const last = this.#singles.at(-1);
      const isStillBlocked = last !== undefined && last.items[0]!.id === single.items[0]!.id;
      if (isStillBlocked) await this.#pause();
    }
  }

  async #write({ items, mayBeStored, locks }: BlockedBatch): Promise<void> {
    await this.#options.write(items, mayBeStored);
    this.#count(items, -1);
    // Not before the write has ended: until then, new events with the same lock must not enter a shared batch.
    for (const lock of locks) this.#countLock(lock, -1);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(RETRY_PAUSE_MS, resolve));
  }

  #count(items: readonly PendingEvent[], sign: 1 | -1): void {
    this.#items += sign * items.length;
    for (const item of items) this.#bytes += sign * this.#options.bytesOf(item);
  }

  #countLock(lock: string, change: 1 | -1): void {
    const count = (this.#locks.get(lock) ?? 0) + change;
    if (count === 0) this.#locks.delete(lock);
    else this.#locks.set(lock, count);
  }
}

/** The lock that an event may wait for: its tenant if that may have to be created, else its idempotency key. */
export function lockOf(item: PendingEvent, knownTenants: Pick<KnownTenants, 'unknownOf'>): string {
  const { tenant, idempotencyKey } = item.event;
  const isKnown = knownTenants.unknownOf([item]) === null;
  return isKnown && idempotencyKey !== null ? idempotencyKeyName(tenant, idempotencyKey) : tenant;
}

interface DivertOptions {
  readonly mayBeStored: boolean;
  readonly blocked?: Pick<BlockedPath, 'isBlocked' | 'addEvent' | 'waitingItems'> | undefined;
  readonly hasConflicted?: boolean | undefined;
}

/** Adds events to the blocked path if others wait there for the same lock. Returns the others. */
export function divertBlocked(
  batch: readonly PendingEvent[],
  { blocked, mayBeStored, hasConflicted }: DivertOptions,
  knownTenants: Pick<KnownTenants, 'unknownOf'>,
): readonly PendingEvent[] {
  if (blocked === undefined || hasConflicted || blocked.waitingItems === 0) return batch;
  return batch.filter((item) => {
    const lock = [item.event.tenant, lockOf(item, knownTenants)].find((each) => blocked.isBlocked(each));
    if (lock !== undefined) blocked.addEvent(item, mayBeStored, lock);
    return lock === undefined;
  });
}
