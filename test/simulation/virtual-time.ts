/**
 * Virtual time for many simulated processes in one real process. Every timer, `setImmediate`, answer of the store and
 * answer of a receiver is a task of a process at a certain time. Tasks run one by one in the order of their times, and all
 * promises that a task settles run before the next task. So a run depends only on its seed.
 */
import type { Clock } from '../../src/domain/clock.ts';
import { newEventId } from '../../src/domain/ids.ts';

const EPOCH = 1_800_000_000_000;
/** Times are multiples of 1/1024 ms, so that sums are exact and a run does not depend on the day on which it starts. */
const TICKS_PER_MS = 1024;
const realSetImmediate = globalThis.setImmediate;

/** A process as the operating system sees it: running, paused (SIGSTOP) or dead. */
export class Process {
  readonly name: string;
  state: 'running' | 'paused' | 'dead' = 'running';
  /** The error of its machine's wall clock. */
  clockErrorMs = 0;
  /** When it was last paused, resumed or killed. */
  stalledAt = Number.NEGATIVE_INFINITY;
  /** Tasks that became due while it was stopped, in order. */
  readonly held: (() => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }
}

interface Task {
  readonly at: number;
  readonly order: number;
  readonly owner: Process | null;
  run: (() => void) | null;
}

export class VirtualTime {
  readonly startedAt = EPOCH;
  #now = this.startedAt;
  #order = 0;
  #tasks: Task[] = [];
  #current: Process | null = null;
  steps = 0;
  /** The error of the store's clock. */
  storeErrorMs = 0;

  constructor() {
    // Ids only grow, and those of an earlier run may be later than the start of this one. An id of the year 1970 resets
    // them, because they follow a clock that goes far back.
    newEventId(0);
  }

  now(): number {
    return this.#now;
  }

  /** Runs `task` after `delayMs`, in `owner`, if that is alive and awake by then. */
  after(delayMs: number, owner: Process | null, task: () => void): () => void {
    const at = this.#now + Math.ceil(Math.max(0, delayMs) * TICKS_PER_MS) / TICKS_PER_MS;
    const entry: Task = { at, order: this.#order++, owner, run: task };
    this.#push(entry);
    return () => {
      entry.run = null;
    };
  }

  /** The clock of a process, whose wall clock may be wrong. */
  clockOf(owner: Process): Clock {
    return {
      now: () => Math.floor(this.#now + owner.clockErrorMs),
      monotonic: () => this.#now - this.startedAt,
      after: (delayMs, task) => this.after(delayMs, owner, task),
    };
  }

  /** The clock of the store. Its timers run even if processes are paused or dead. */
  get storeClock(): Pick<Clock, 'now' | 'monotonic' | 'after'> {
    return {
      now: () => this.#now + this.storeErrorMs,
      monotonic: () => this.#now,
      after: (delayMs, task) => this.after(delayMs, null, task),
    };
  }

  pause(process: Process): void {
    if (process.state !== 'running') return;
    process.state = 'paused';
    process.stalledAt = this.#now;
  }

  resume(process: Process): void {
    if (process.state !== 'paused') return;
    process.state = 'running';
    process.stalledAt = this.#now;
    for (const task of process.held.splice(0)) this.after(0, process, task);
  }

  kill(process: Process): void {
    process.state = 'dead';
    process.stalledAt = this.#now;
    process.held.length = 0;
  }

  /** Runs all tasks of the next `ms` milliseconds. */
  run(ms: number): Promise<void> {
    return this.runUntil(this.#now + Math.ceil(ms * TICKS_PER_MS) / TICKS_PER_MS);
  }

  /** Runs all tasks up to this time. Meanwhile `setImmediate` adds a task for the same process. */
  async runUntil(until: number): Promise<void> {
    globalThis.setImmediate = ((task: (...args: unknown[]) => void, ...args: unknown[]) => {
      if (this.#current === null) return realSetImmediate(task, ...args);
      this.after(0, this.#current, () => task(...args));
      return undefined;
    }) as unknown as typeof setImmediate;
    try {
      for (;;) {
        const next = this.#tasks[0];
        if (next === undefined || next.at > until) break;
        this.#pop();
        this.#now = Math.max(this.#now, next.at);
        await this.#run(next);
      }
      this.#now = Math.max(this.#now, until);
    } finally {
      globalThis.setImmediate = realSetImmediate;
    }
  }

  /** Runs `work` now as a task of a process, with all promises that it settles. */
  async inside<T>(owner: Process, work: () => T): Promise<T> {
    this.#current = owner;
    try {
      const result = work();
      await runMicrotasks();
      return result;
    } finally {
      this.#current = null;
    }
  }

  async #run({ owner, run }: Task): Promise<void> {
    if (run === null || owner?.state === 'dead') return;
    if (owner?.state === 'paused') {
      owner.held.push(run);
      return;
    }
    this.steps += 1;
    this.#current = owner;
    try {
      run();
      await runMicrotasks();
    } finally {
      this.#current = null;
    }
  }

  #push(task: Task): void {
    const tasks = this.#tasks;
    let index = tasks.length;
    tasks.push(task);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(task, tasks[parent]!)) break;
      tasks[index] = tasks[parent]!;
      index = parent;
    }
    tasks[index] = task;
  }

  #pop(): void {
    const tasks = this.#tasks;
    const last = tasks.pop()!;
    if (tasks.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= tasks.length) break;
      if (child + 1 < tasks.length && before(tasks[child + 1]!, tasks[child]!)) child += 1;
      if (!before(tasks[child]!, last)) break;
      tasks[index] = tasks[child]!;
      index = child;
    }
    tasks[index] = last;
  }
}

const before = (a: Task, b: Task): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** Resolves after all pending promise reactions have run. */
function runMicrotasks(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve));
}

/** A random generator that gives the same numbers for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  integer(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.integer(0, items.length - 1)]!;
  }
}
