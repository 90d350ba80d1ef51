/**
 * A `Map` for entries that live briefly, such as requests in flight.
 *
 * When a `Map` or `Set` changes the size of its table, V8 links the old table to the new one, for iterators. A major
 * collection moves the current table to the old generation. From then on that table keeps all later ones alive, with the
 * entries that they had, until the next major collection: each minor collection copies megabytes and stops the process
 * for ten milliseconds instead of one. This class copies its few entries to a new `Map` now and then, which cuts the links.
 */
export class TurnoverMap<K, V> {
  #map = new Map<K, V>();
  #deleted = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    this.#map.set(key, value);
  }

  /** Returns whether there was such an entry. */
  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false;
    this.#deleted += 1;
    // Copy after as many deletions as there are entries, so that the cost per deletion does not depend on the size of the map.
    if (this.#deleted > MIN_DELETED + this.#map.size) {
      this.#map = new Map(this.#map);
      this.#deleted = 0;
    }
    return true;
  }

  clear(): void {
    this.#map = new Map();
    this.#deleted = 0;
  }

  /** Entries that are deleted meanwhile may still be returned. */
  values(): IterableIterator<V> {
    return this.#map.values();
  }

  /** Entries that are deleted meanwhile may still be returned. */
  entries(): IterableIterator<[K, V]> {
    return this.#map.entries();
  }
}

const MIN_DELETED = 64;
