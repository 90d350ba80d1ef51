/**
 * Finds the values whose patterns match an event type. The cost depends on the number of segments of the type and on the
 * number of matches, never on the number of patterns: `order.item.added` takes one lookup for the exact type and one
 * each for `order.item.*`, `order.*` and `*`.
 */
import { RESERVED_TYPE_PREFIX } from './event.ts';

/** One value alone has no set: most patterns have one value, and a set takes more memory than the pattern. */
type Values<T> = T | Set<T>;

export class PatternIndex<T extends object | string | number | boolean> {
  readonly #exact = new Map<string, Values<T>>();
  /** By the text before the star, dot included: `order.*` is stored under `order.`. */
  readonly #prefixes = new Map<string, Values<T>>();
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
    const found: Values<T>[] = [];
    if (this.#all.size > 0 && !type.startsWith(RESERVED_TYPE_PREFIX)) found.push(this.#all);
    const exact = this.#exact.get(type);
    if (exact !== undefined) found.push(exact);
    if (this.#prefixes.size > 0) {
      for (let dot = type.indexOf('.'); dot !== -1; dot = type.indexOf('.', dot + 1)) {
        const prefix = this.#prefixes.get(type.slice(0, dot + 1));
        if (prefix !== undefined) found.push(prefix);
      }
    }
    if (found.length < 2) return found.length === 0 ? [] : listOf(found[0]!);
    const matched = new Set<T>();
    for (const values of found) {
      if (values instanceof Set) for (const value of values) matched.add(value);
      else matched.add(values);
    }
    return [...matched];
  }
}

const listOf = <T>(values: Values<T>): T[] => (values instanceof Set ? [...values] : [values]);

function addTo<T>(index: Map<string, Values<T>>, key: string, value: T): void {
  const known = index.get(key);
  if (known instanceof Set) known.add(value);
  else if (known === undefined) index.set(key, value);
  else if (known !== value) index.set(key, new Set([known, value]));
}

function removeFrom<T>(index: Map<string, Values<T>>, key: string, value: T): void {
  const known = index.get(key);
  if (known === value) index.delete(key);
  else if (known instanceof Set && known.delete(value) && known.size === 1)
    index.set(key, known.values().next().value!);
}
