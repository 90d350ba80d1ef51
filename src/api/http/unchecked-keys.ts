/**
 * The hashes of keys without a checksum, which earlier versions made. Guesses are looked up here instead of in the
 * database: whatever their number, they cost a few small queries per second in all.
 */
import type { Clock } from '../../domain/clock.ts';
import type { Pool } from '../../postgres/database.ts';
import { listUncheckedKeys } from '../../postgres/queries/keys.ts';

/** A server of an earlier version may create keys beside this one. They are found after at most this time. */
const RELOAD_MS = 250;
/**
 * How far each load reads behind the newest row. A row becomes visible when it commits, but its time is that of the start
 * of its transaction, so an older row can appear later.
 */
const OVERLAP_MS = 60_000;

export class UncheckedKeys {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #hashes = new Set<string>();
  #newest = 0;
  #loadedAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | null = null;

  constructor(pool: Pool, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** False: there is no key with this hash. True: look it up. */
  has(hash: Buffer): boolean | Promise<boolean> {
    const name = nameOf(hash);
    if (this.#hashes.has(name)) return true;
    if (this.#loading === null && this.#clock.monotonic() - this.#loadedAt < RELOAD_MS) return false;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading.then(() => this.#hashes.has(name));
  }

  /** Reads all hashes again at the next guess. Call it when the database was replaced. */
  clear(): void {
    this.#hashes.clear();
    this.#newest = 0;
    this.#loadedAt = Number.NEGATIVE_INFINITY;
  }

  async #load(): Promise<void> {
    const startedAt = this.#clock.monotonic();
    const rows = await listUncheckedKeys(this.#pool, new Date(Math.max(0, this.#newest - OVERLAP_MS)));
    for (const { hash, created_at: at } of rows) {
      this.#hashes.add(nameOf(hash));
      this.#newest = Math.max(this.#newest, at.getTime());
    }
    this.#loadedAt = startedAt;
  }
}

/** Half of a hash is enough: a collision costs one query. */
const nameOf = (hash: Buffer): string => hash.toString('latin1', 0, 16);
