import type { Uuid } from '../domain/ids.ts';
import { type ConversionKey, conversionName } from '../ports/conversion-store.ts';

const CACHE_BYTES = 8 * 1024 * 1024;
const ENTRY_OVERHEAD_BYTES = 300;

/** The latest converted payloads, so that an event for a thousand endpoints with three pins is converted three times. */
export class ConversionCache {
  readonly #entries = new Map<string, { readonly eventId: Uuid; readonly data: Buffer }>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes = CACHE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get(key: ConversionKey): Buffer | undefined {
    return this.#entries.get(conversionName(key))?.data;
  }

  /** Returns false if it is too large for the cache. */
  add(key: ConversionKey, data: Buffer): boolean {
    const name = conversionName(key);
    if (data.length > this.#maxBytes / 8) return false;
    if (this.#entries.has(name)) return true;
    this.#entries.set(name, { eventId: key.eventId, data });
    this.#bytes += data.length + ENTRY_OVERHEAD_BYTES;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest, entry.data);
    }
    return true;
  }

  expunge(eventId: Uuid): void {
    for (const [name, entry] of this.#entries) if (entry.eventId === eventId) this.#remove(name, entry.data);
  }

  #remove(name: string, data: Buffer): void {
    this.#entries.delete(name);
    this.#bytes -= data.length + ENTRY_OVERHEAD_BYTES;
  }
}
