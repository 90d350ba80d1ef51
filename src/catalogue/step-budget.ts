/**
 * Bounds the time that one check of a payload may take. A schema may multiply the work (references that fan out, patterns
 * over long texts), so every step of a check takes from the budget. Checks are synchronous: one budget serves all of them.
 */
export class OverBudgetError extends Error {
  override name = 'OverBudgetError';
}

/** Some ten milliseconds of work. */
export const MAX_STEPS = 200_000;

/** Counting the keys of a smaller object is faster than looking their number up. */
const CACHED_FROM_KEYS = 64;
const CHARACTERS_PER_STEP = 16;

class StepBudget {
  left = 0;
  /** The number of keys of large objects in the payload that is being checked. */
  #keyCounts: WeakMap<object, number> | null = null;

  refill(): void {
    this.left = MAX_STEPS;
    this.#keyCounts = null;
  }

  /** Takes the steps of work that visits every key of an object `times` times. Throws `OverBudgetError`. */
  takeKeys(value: unknown, times: number): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    let count = this.#keyCounts?.get(value);
    if (count === undefined) {
      count = Object.keys(value).length;
      if (count >= CACHED_FROM_KEYS) {
        this.#keyCounts ??= new WeakMap();
        this.#keyCounts.set(value, count);
      }
    }
    this.take(count * times);
  }

  /** Takes the steps of work that visits a whole value. Throws `OverBudgetError` as soon as the budget is used up. */
  takeAll(value: unknown): void {
    if (typeof value === 'string') this.take(1 + value.length / CHARACTERS_PER_STEP);
    else if (typeof value !== 'object' || value === null) this.take(1);
    else if (Array.isArray(value)) {
      this.take(1);
      for (const item of value) this.takeAll(item);
    } else {
      this.takeKeys(value, 1);
      this.take(1);
      for (const [name, part] of Object.entries(value)) {
        this.take(name.length / CHARACTERS_PER_STEP);
        this.takeAll(part);
      }
    }
  }

  /** Throws `OverBudgetError` when the budget is used up. */
  take(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw new OverBudgetError(`the check takes more than ${MAX_STEPS} steps`);
  }
}

export const budget = new StepBudget();
