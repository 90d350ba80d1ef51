/** The runs of the lab as messages, so that worker threads can share them. */
import { type BusyResult, type BusyTrial, runBusyEndpoint } from './busy-endpoint.ts';
import type { ClassName } from './fault-models.ts';
import { type LoopTally, runPlainLoop } from './plain-loop.ts';
import { findPolicy } from './policies.ts';
import { buildReceivers, type FaultScales } from './receivers.ts';
import type { TrialResult } from './tally.ts';
import { Traffic } from './traffic.ts';
import { lengthOf, runTrial, type Scale } from './trial.ts';

export type Job =
  | { readonly kind: 'trial'; readonly policy: string; readonly scale: Scale; readonly faults: FaultScales }
  | { readonly kind: 'loop'; readonly policy: string; readonly scale: Scale; readonly faults: FaultScales }
  | { readonly kind: 'busy'; readonly trial: BusyTrial };

export interface JobResults {
  readonly trial: TrialResult;
  readonly loop: Readonly<Record<ClassName, LoopTally>>;
  readonly busy: BusyResult;
}

export async function runJob(job: Job): Promise<JobResults[Job['kind']]> {
  switch (job.kind) {
    case 'trial':
      return runTrial(findPolicy(job.policy), job.scale, job.faults);
    case 'loop': {
      const receivers = buildReceivers({ ...job.scale, lengthMs: lengthOf(job.scale) }, job.faults);
      const { endpoint } = findPolicy(job.policy);
      return runPlainLoop(receivers, new Traffic(job.scale), endpoint, job.scale.seed);
    }
    case 'busy':
      return runBusyEndpoint(job.trial);
  }
}
