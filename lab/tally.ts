/** Counts the results of a trial by class of endpoint. */
import type { DeadReason } from '../src/domain/outcome.ts';
import { type ClassName, classNames } from './fault-models.ts';
import type { Scale } from './trial.ts';

export interface ClassResult {
  readonly deliveries: number;
  /** Shares of all deliveries. */
  readonly firstAttempt: number;
  readonly final: number;
  readonly dead: number;
  readonly skipped: number;
  readonly requestsPerDelivery: number;
  /** Seconds from acceptance to success, of the deliveries that succeeded. */
  readonly p50: number;
  readonly p99: number;
  /** How often an endpoint was disabled by the rules. */
  readonly disabled: number;
  readonly deadReasons: Readonly<Partial<Record<DeadReason, number>>>;
  /** The share of all deliveries that succeeded within each of `waitLimits`. */
  readonly withinSeconds: readonly number[];
}

export interface TrialResult {
  readonly policy: string;
  readonly scale: Scale;
  readonly classes: Readonly<Record<ClassName, ClassResult>>;
}

/** Seconds: the steps of the plot of time to delivery. */
export const waitLimits: readonly number[] = [
  1, 5, 15, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400,
  129_600, 172_800, 259_200, 345_600,
];

class ClassCounts {
  requests = 0;
  firstAttempt = 0;
  skipped = 0;
  /** Neither delivered nor dead at the end. */
  waiting = 0;
  disabled = 0;
  readonly dead: Partial<Record<DeadReason, number>> = {};
  readonly #waits: number[] = [];

  addDelivered(attempts: number, replays: number, waitedSeconds: number): void {
    if (attempts === 1 && replays === 0) this.firstAttempt += 1;
    this.#waits.push(waitedSeconds);
  }

  result(): ClassResult {
    const waits = this.#waits.sort((a, b) => a - b);
    const dead = Object.values(this.dead).reduce((sum, count) => sum + count, 0);
    const deliveries = waits.length + dead + this.skipped + this.waiting;
    const percentile = (share: number): number => waits[Math.floor((waits.length - 1) * share)] ?? 0;
    return {
      deliveries,
      firstAttempt: this.firstAttempt / deliveries,
      final: waits.length / deliveries,
      dead: dead / deliveries,
      skipped: this.skipped / deliveries,
      requestsPerDelivery: this.requests / deliveries,
      p50: percentile(0.5),
      p99: percentile(0.99),
      disabled: this.disabled,
      deadReasons: this.dead,
      withinSeconds: waitLimits.map((limit) => waits.filter((wait) => wait <= limit).length / deliveries),
    };
  }
}

export class Tally {
  readonly #counts = new Map(classNames.map((name) => [name, new ClassCounts()]));

  of(name: ClassName): ClassCounts {
    return this.#counts.get(name)!;
  }

  result(policy: string, scale: Scale): TrialResult {
    const classes = Object.fromEntries([...this.#counts].map(([name, counts]) => [name, counts.result()]));
    return { policy, scale, classes: classes as Record<ClassName, ClassResult> };
  }
}
