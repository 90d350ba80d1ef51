/**
 * The patterns of one endpoint as a tree of segments: tells whether another pattern has an event type in common with any
 * of them. The cost depends on the length of the other pattern, never on the number of patterns in the set.
 */
import { RESERVED_TYPE_PREFIX } from './event.ts';

interface Node {
  /** By segment. */
  readonly below: Map<string, Node>;
  /** The set has the type that ends here: `order.paid`. */
  isType: boolean;
  /** The set has all types below this node: `order.*`. */
  isPrefix: boolean;
}

const newNode = (): Node => ({ below: new Map(), isType: false, isPrefix: false });

const ALL = '*';
const isReserved = (pattern: string): boolean => pattern.startsWith(RESERVED_TYPE_PREFIX);

export class PatternSet {
  readonly #root = newNode();
  /** True if the set has `*`, which matches all types but the reserved ones. */
  readonly #hasAll: boolean;
  /** True if the set has `*`, or a pattern that matches a type that `*` matches too. */
  readonly #meetsAll: boolean;

  constructor(patterns: readonly string[]) {
    this.#hasAll = patterns.includes(ALL);
    this.#meetsAll = patterns.some((pattern) => !isReserved(pattern));
    for (const pattern of patterns) if (pattern !== ALL) this.#add(pattern);
  }

  /** Whether some event type matches both the pattern and one of the set. */
  overlaps(pattern: string): boolean {
    if (pattern === ALL) return this.#meetsAll;
    if (this.#hasAll && !isReserved(pattern)) return true;
    let node = this.#root;
    for (const segment of segmentsOf(pattern)) {
      if (node.isPrefix) return true;
      // `order.*` has a type in common with everything that is below `order`.
      if (segment === ALL) return node.below.size > 0;
      const next = node.below.get(segment);
      if (next === undefined) return false;
      node = next;
    }
    return node.isType;
  }

  #add(pattern: string): void {
    let node = this.#root;
    for (const segment of segmentsOf(pattern)) {
      if (segment === ALL) {
        node.isPrefix = true;
        return;
      }
      let next = node.below.get(segment);
      if (next === undefined) {
        next = newNode();
        node.below.set(segment, next);
      }
      node = next;
    }
    node.isType = true;
  }
}

/** Without an array: most walks end after the first segments. */
function* segmentsOf(pattern: string): Generator<string, void> {
  let start = 0;
  for (let dot = pattern.indexOf('.'); dot !== -1; dot = pattern.indexOf('.', start)) {
    yield pattern.slice(start, dot);
    start = dot + 1;
  }
  yield pattern.slice(start);
}
