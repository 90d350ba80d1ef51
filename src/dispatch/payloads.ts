/**
 * Payloads are read just before they are sent, many in one read. A small cache keeps the last ones: an event that
 * fans out to ten endpoints is read once.
 */
import { Batcher } from '../domain/batcher.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EventLookup } from '../ports/accept-log.ts';

/** undefined: could not be read now. null: there is no such event any more. */
type Callback = (event: EventContent | null | undefined) => void;

export class Payloads {
  readonly #cacheBytes: number;
  readonly #cache = new Map<Uuid, EventContent>();
  #cachedBytes = 0;
  readonly #batcher: Batcher<{ id: Uuid; done: Callback }>;

  constructor(options: { events: EventLookup; cacheBytes: number; failed: (error: unknown) => void }) {
    this.#cacheBytes = options.cacheBytes;
    this.#batcher = new Batcher({
      maxItems: 200,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: async (batch) => {
        let events: Map<Uuid, EventContent> | undefined;
        try {
          events = await options.events.load([...new Set(batch.map(({ id }) => id))]);
          for (const event of events.values()) this.#remember(event);
        } catch (error) {
          options.failed(error);
        }
        for (const { id, done } of batch) done(events === undefined ? undefined : (events.get(id) ?? null));
      },
    });
  }

  read(id: Uuid, done: Callback): void {
    const cached = this.#cache.get(id);
    if (cached === undefined) this.#batcher.add({ id, done });
    else done(cached);
  }

  #remember(event: EventContent): void {
    if (event.data.length > this.#cacheBytes / 8 || this.#cache.has(event.id)) return;
    this.#cache.set(event.id, event);
    this.#cachedBytes += event.data.length + 200;
    for (const [id, oldest] of this.#cache) {
      if (this.#cachedBytes <= this.#cacheBytes) break;
      this.#cache.delete(id);
      this.#cachedBytes -= oldest.data.length + 200;
    }
  }
}
