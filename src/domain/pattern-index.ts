/**
 * Finds the values whose patterns match an event type. The cost depends on the number of segments of the type and on the
 * number of matches, never on the number of patterns: `order.item.added` takes one lookup for the exact type and one
 * each for `order.item.*`, `order.*` and `*`.
 */
import { RESERVED_TYPE_PREFIX } from './event.ts';

export class PatternIndex<T> {
  readonly #exact = new Map<string, Set<T>>();
  /** By the text before the star, dot included: `order.*` is stored under `order.`. */
  readonly #prefixes = new Map<string, Set<T>>();
  readonly #all = new Set<T>();

  get isEmpty(): boolean {
    return this.#all.size === 0 && this.#exact.size === 0 && this.#prefixes.size === 0;
  }

  add(pattern: string, value: T): void {
    if (pattern === '*') this.#all.add(value);
    else if (pattern.endsWith('.*')) addTo(this.#prefixes, pattern.slice(0, -1), value);
    else addTo(this.#exact, pattern, value);
  }

  remove(pattern: string, value: T): void {
    if (pattern === '*') this.#all.delete(value);
    else if (pattern.endsWith('.*')) removeFrom(this.#prefixes, pattern.slice(0, -1), value);
    else removeFrom(this.#exact, pattern, value);
  }

  /** Every value once, even if several of its patterns match. `*` does not match the reserved types. */
  match(type: string): T[] {
    const sets: ReadonlySet<T>[] = [];
    if (this.#all.size > 0 && !type.startsWith(RESERVED_TYPE_PREFIX)) sets.push(this.#all);
    const exact = this.#exact.get(type);
    if (exact !== undefined) sets.push(exact);
    if (this.#prefixes.size > 0) {
      for (let dot = type.indexOf('.'); dot !== -1; dot = type.indexOf('.', dot + 1)) {
        const prefix = this.#prefixes.get(type.slice(0, dot + 1));
        if (prefix !== undefined) sets.push(prefix);
      }
    }
    if (sets.length < 2) return sets.length === 0 ? [] : [...sets[0]!];
    const matched = new Set<T>();
    for (const set of sets) for (const value of set) matched.add(value);
    return [...matched];
  }
}

function addTo<T>(sets: Map<string, Set<T>>, key: string, value: T): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom<T>(sets: Map<string, Set<T>>, key: string, value: T): void {
  const set = sets.get(key);
  if (set?.delete(value) && set.size === 0) sets.delete(key);
}
