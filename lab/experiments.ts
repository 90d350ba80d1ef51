/** Makes all runs of a plan and returns their results. */
import type { Jitter } from '../src/domain/retry.ts';
import { jitters } from '../src/domain/retry.ts';
import type { BusyResult } from './busy-endpoint.ts';
import type { ClassName } from './fault-models.ts';
import type { LoopTally } from './plain-loop.ts';
import { type BreakerName, breakerNames, breakerOf, failingShares, type Plan } from './plan.ts';
import { policies } from './policies.ts';
import { Pool } from './pool.ts';
import { calibrateFaults, type FaultScales } from './receivers.ts';
import type { TrialResult } from './tally.ts';
import { Traffic } from './traffic.ts';
import { lengthOf, type Scale } from './trial.ts';

type Failing = (typeof failingShares)[number];

export interface LabResults {
  readonly plan: Plan;
  readonly seconds: number;
  readonly threads: number;
  /** By policy. */
  readonly sample: ReadonlyMap<string, TrialResult>;
  readonly larger: ReadonlyMap<string, TrialResult>;
  readonly everything: ReadonlyMap<string, Readonly<Record<ClassName, LoopTally>>>;
  readonly fullRate: ReadonlyMap<BreakerName, TrialResult>;
  readonly busy: readonly {
    readonly failing: Failing;
    readonly breaker: BreakerName;
    readonly result: BusyResult;
  }[];
  readonly recovery: readonly {
    readonly jitter: Jitter;
    readonly breaker: BreakerName;
    readonly result: BusyResult;
  }[];
}

/** Policies that are also run on a larger sample. */
export const checkedPolicies = ['default', 'never disabled, no breaker', 'reference'] as const;
/** Those of them without a breaker and without disabled endpoints can be computed by the plain loop. */
const loopPolicies = ['never disabled, no breaker', 'reference'] as const;
/** The breakers whose recovery is shown. */
const recoveryBreakers = ['none', 'twenty, 30 s'] as const;

const calibrate = (scale: Scale): FaultScales =>
  calibrateFaults({ ...scale, lengthMs: lengthOf(scale) }, new Traffic(scale));

export async function runExperiments(
  plan: Plan,
  threads: number,
  onProgress: (done: number, of: number, seconds: number) => void,
): Promise<LabResults> {
  const startedAt = performance.now();
  const pool = new Pool(threads, onProgress);
  const faults = calibrate(plan.sample);
  const fullRateFaults = calibrate(plan.fullRate);
  const trial = (policy: string, scale: Scale, faultScales: FaultScales): Promise<TrialResult> =>
    pool.add({ kind: 'trial', policy, scale, faults: faultScales });
  const policyOf = (name: BreakerName): string =>
    name === 'none' ? 'never disabled, no breaker' : `breaker ${name}`;

  // The longest first, so that at the end no thread works alone on a long one while the others are idle.
  const everything = mapAll(loopPolicies, (policy) =>
    pool.add({ kind: 'loop', policy, scale: plan.everything, faults }),
  );
  const fullRate = mapAll(breakerNames, (name) => trial(policyOf(name), plan.fullRate, fullRateFaults));
  const larger = mapAll(checkedPolicies, (policy) => trial(policy, plan.larger, faults));
  const sample = mapAll(
    policies.map(({ id }) => id),
    (policy) => trial(policy, plan.sample, faults),
  );
  const busy = failingShares.flatMap((failing) =>
    breakerNames.map(async (breaker) => ({
      failing,
      breaker,
      result: await pool.add({
        kind: 'busy',
        trial: { ...plan.busy, failing, breaker: breakerOf(breaker) },
      }),
    })),
  );
  const recovery = jitters.flatMap((jitter) =>
    recoveryBreakers.map(async (breaker) => ({
      jitter,
      breaker,
      result: await pool.add({
        kind: 'busy',
        trial: { ...plan.busy, failing: 'outage', jitter, breaker: breakerOf(breaker) },
      }),
    })),
  );
  await pool.run();
  return {
    plan,
    threads,
    everything: await everything,
    fullRate: await fullRate,
    larger: await larger,
    sample: await sample,
    busy: await Promise.all(busy),
    recovery: await Promise.all(recovery),
    seconds: (performance.now() - startedAt) / 1000,
  };
}

async function mapAll<K, V>(keys: readonly K[], run: (key: K) => Promise<V>): Promise<Map<K, V>> {
  return new Map(await Promise.all(keys.map(async (key) => [key, await run(key)] as const)));
}
