import { TurnoverMap } from './turnover-map.ts';

interface Node<T> {
  readonly value: T;
  previous: Node<T> | null;
  next: Node<T> | null;
}

/**
 * First in, first out, each value at most once. Every operation takes the same time, however long the queue is. A `Set`
 * cannot do that: taking its first value steps over all values that were taken before.
 */
export class UniqueQueue<T> {
  readonly #nodes = new TurnoverMap<T, Node<T>>();
  #first: Node<T> | null = null;
  #last: Node<T> | null = null;

  get size(): number {
    return this.#nodes.size;
  }

  has(value: T): boolean {
    return this.#nodes.has(value);
  }

  /** Adds the value at the end. A value that is in the queue keeps its place. */
  add(value: T): void {
    if (this.#nodes.has(value)) return;
    const node: Node<T> = { value, previous: this.#last, next: null };
    if (this.#last === null) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
    this.#nodes.set(value, node);
  }

  /** Returns whether the value was in the queue. */
  delete(value: T): boolean {
    const node = this.#nodes.get(value);
    if (node === undefined) return false;
    this.#nodes.delete(value);
    if (node.previous === null) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next === null) this.#last = node.previous;
    else node.next.previous = node.previous;
    // A removed node in the old generation would keep all later nodes alive.
    node.previous = null;
    node.next = null;
    return true;
  }

  /** Removes and returns the first value. */
  shift(): T | undefined {
    const node = this.#first;
    if (node === null) return undefined;
    this.delete(node.value);
    return node.value;
  }

  clear(): void {
    this.#nodes.clear();
    this.#first = null;
    this.#last = null;
  }
}
