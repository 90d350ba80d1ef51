/**
 * Loads payloads just before they are sent, many in one read. A small cache keeps the latest ones, so that an event
 * with ten deliveries is read once. The cache has two generations: when the young one is full, it replaces the old
 * one. Removing single events, oldest first, took 4 µs per event.
 */
import { Batcher } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EventLookup } from '../ports/event-store.ts';

/** undefined: the payload cannot be read now. null: the event no longer exists. */
type Callback = (event: EventContent | null | undefined) => void;

interface Waiting {
  readonly id: Uuid;
  readonly done: Callback;
}

export interface PayloadsOptions {
  readonly events: EventLookup;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

const BATCH_EVENTS = 200;
const GENERATION_BYTES = 4 * 1024 * 1024;
const MAX_CACHED_BYTES = 1024 * 1024;
const EVENT_OVERHEAD_BYTES = 200;
/**
 * How long expunged ids are kept: longer than renewals of the lease repeat them (two minutes), and longer than the preparation of a
 * request takes. The bound is a time and not a number of ids: otherwise somebody who expunges many events could displace an event
 * whose request is being prepared.
 */
const KEEP_EXPUNGED_MS = 150_000;

export class Payloads {
  readonly #options: PayloadsOptions;
  #young = new Map<Uuid, EventContent>();
  #old = new Map<Uuid, EventContent>();
  #youngBytes = 0;
  /** When each id was expunged, on the monotonic clock, oldest first. */
  readonly #expunged = new Map<Uuid, number>();
  readonly #batcher: Batcher<Waiting>;

  constructor(options: PayloadsOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      maxItems: BATCH_EVENTS,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: (batch) => this.#load(batch),
    });
  }

  /** Forgets the payload of an event, and refuses to load it again. */
  expunge(id: Uuid): void {
    this.#young.delete(id);
    this.#old.delete(id);
    const now = this.#options.clock.monotonic();
    this.#expunged.delete(id);
    this.#expunged.set(id, now);
    for (const [oldest, expungedAt] of this.#expunged) {
      if (now - expungedAt <= KEEP_EXPUNGED_MS) break;
      this.#expunged.delete(oldest);
    }
  }

  isExpunged(id: Uuid): boolean {
    return this.#expunged.has(id);
  }

  load(id: Uuid, done: Callback): void {
    if (this.#expunged.has(id)) return done(null);
    const cached = this.#young.get(id) ?? this.#old.get(id);
    if (cached === undefined) this.#batcher.add({ id, done });
    else done(cached);
  }

  async #load(batch: readonly Waiting[]): Promise<void> {
    let events: Map<Uuid, EventContent> | undefined;
    try {
      events = await this.#options.events.load([...new Set(batch.map(({ id }) => id))]);
      for (const event of events.values()) this.#cacheEvent(event);
    } catch (error) {
      this.#options.onProblem('read payloads', error);
    }
    for (const { id, done } of batch)
      try {
        done(events === undefined ? undefined : (events.get(id) ?? null));
      } catch (error) {
        // One delivery's error must not keep the others of its batch waiting, nor stop the next batch.
        this.#options.onProblem('pass on a payload', error);
      }
  }

  #cacheEvent(event: EventContent): void {
    if (event.data.length > MAX_CACHED_BYTES || this.isExpunged(event.id)) return;
    this.#young.set(event.id, event);
    this.#youngBytes += event.data.length + EVENT_OVERHEAD_BYTES;
    if (this.#youngBytes <= GENERATION_BYTES) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}
