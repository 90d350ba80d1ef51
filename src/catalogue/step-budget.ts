/**
 * Bounds the time that one check of a payload may take. A schema may multiply the work (references that fan out, patterns
 * over long texts), so every step of a check takes from the budget. Checks are synchronous: one budget serves all of them.
 */
export class OverBudgetError extends Error {
  override name = 'OverBudgetError';
}

/** Some ten milliseconds of work. */
export const MAX_STEPS = 200_000;

class StepBudget {
  left = 0;

  refill(): void {
    this.left = MAX_STEPS;
  }

  /** Throws `OverBudgetError` when the budget is used up. */
  take(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw new OverBudgetError(`the check takes more than ${MAX_STEPS} steps`);
  }
}

export const budget = new StepBudget();
