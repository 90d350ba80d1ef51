/**
 * A schedule without a breaker and without limits treats each delivery by itself. Then a plain loop over `decide` gives the
 * same results as the engine, and a thousand times as many deliveries fit in the time. The lab uses it to check that its
 * sample is large enough, and that the engine does what its schedule says.
 */
import { decide } from '../src/domain/decide.ts';
import { type EndpointConfig, resolveRetry } from '../src/domain/endpoint-config.ts';
import type { AttemptOutcome } from '../src/domain/outcome.ts';
import { delayMsBefore } from '../src/domain/retry.ts';
import { Random } from '../test/simulation/virtual-time.ts';
import { type ClassName, classNames } from './fault-models.ts';
import type { Receiver } from './receivers.ts';
import type { Traffic } from './traffic.ts';

export interface LoopTally {
  deliveries: number;
  firstAttempt: number;
  delivered: number;
  requests: number;
}

const DAY_MS = 86_400_000;
const DEFAULT_DEADLINE_MS = 15_000;

export function runPlainLoop(
  receivers: readonly Receiver[],
  traffic: Traffic,
  config: Pick<EndpointConfig, 'retry' | 'timeout_ms'>,
  seed: number,
): Record<ClassName, LoopTally> {
  const policy = resolveRetry(config.retry);
  const deadlineMs = config.timeout_ms ?? DEFAULT_DEADLINE_MS;
  const random = new Random(seed).next;
  const tallies = Object.fromEntries(
    classNames.map((name) => [name, { deliveries: 0, firstAttempt: 0, delivered: 0, requests: 0 }]),
  ) as Record<ClassName, LoopTally>;
  for (const { at, endpoints } of traffic.groups(receivers.length)) {
    for (const index of endpoints) {
      const receiver = receivers[index]!;
      const tally = tallies[receiver.className];
      tally.deliveries += 1;
      let now = at + delayMsBefore(policy, 1, random);
      for (let attempts = 0; ; attempts += 1) {
        tally.requests += 1;
        const answer = receiver.answer(now, identityOf(at, attempts + 1));
        const isTimeout = answer.status === null || answer.afterMs > deadlineMs;
        now += isTimeout ? deadlineMs : answer.afterMs;
        const outcome = {
          statusCode: isTimeout ? null : answer.status,
          error: null,
          retryAfterMs: answer.retryAfterMs ?? null,
        } as AttemptOutcome;
        const history = { attempts, attemptsBeforeReplay: 0, agesFrom: at };
        const verdict = decide(outcome, history, policy, { now, random, retryAfterCapMs: DAY_MS });
        if (verdict.kind === 'delivered') {
          tally.delivered += 1;
          if (attempts === 0) tally.firstAttempt += 1;
        }
        if (verdict.kind !== 'retry') break;
        now = verdict.dueAt;
      }
    }
  }
  return tallies;
}

/** Tells the requests to one endpoint apart: deliveries by their time of acceptance, and attempts. */
export const identityOf = (acceptedAt: number, attempt: number): number =>
  (Math.floor(acceptedAt) * 64 + attempt) | 0;
