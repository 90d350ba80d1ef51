/** The parts of the engine that `Attempts` needs, and the observer that it reports to. */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { AttemptOutcome, Verdict } from '../domain/outcome.ts';
import type { AttemptRequest, PayloadConverter, RequestSender, ResultRecorder } from '../ports/stages.ts';
import type { BatchAttemptsOptions } from './batch-attempts.ts';
import type { DebounceDecisions } from './debounce.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { Ownership } from './ownership.ts';
import type { Payloads } from './payloads.ts';
import type { RecentIds } from './recent-ids.ts';
import type { Scheduler } from './scheduler.ts';
import type { StartLog } from './start-log.ts';

/** Metrics, log and live tail. */
export interface AttemptObserver {
  onAnswered(
    lane: Lane,
    item: LaneItem,
    outcome: AttemptOutcome,
    verdict: Verdict,
    event: EventContent,
  ): void;
  onSettling(verdict: Verdict): void;
  /** This machine lacked a resource for a request. `code` is the error code, such as EMFILE. */
  onShortage(code: string): void;
  onCircuitChanged(lane: Lane): void;
  /** The adaptive limits of a slow endpoint were lowered or raised. */
  onLimitsChanged(lane: Lane): void;
  /** The endpoint answered 410 to a request that started at `startedAt`. The dead letter is already recorded. */
  onEndpointGone(endpoint: Endpoint, startedAt: number): void;
}

export interface AttemptsOptions extends Pick<BatchAttemptsOptions, 'composer' | 'recorder' | 'onProblem'> {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ownership: Pick<Ownership, 'maySend'>;
  readonly payloads: Pick<Payloads, 'load' | 'isExpunged'>;
  /** Null: there is no catalogue, and every event is sent as it was published. */
  readonly converter: PayloadConverter | null;
  readonly startLog: Pick<StartLog, 'record'>;
  readonly debounce: Pick<DebounceDecisions, 'decide' | 'isDeciding'>;
  readonly sender: RequestSender;
  readonly settler: ResultRecorder;
  readonly scheduler: Pick<Scheduler, 'release'>;
  readonly laneKeeper: Pick<LaneKeeper, 'onAttemptEnded' | 'reload'>;
  readonly budget: LaneBudget;
  readonly observer: AttemptObserver;
  /** Recently started deliveries: the worker ignores late hand-overs of their commit. */
  readonly recentStarts: Pick<RecentIds, 'add'>;
  readonly retryAfterCapMs: number;
}

/** A payload in the version that the endpoint pins. */
export interface ReadyPayload {
  readonly event: EventContent;
  /** The settings that the endpoint had when the payload was converted. */
  readonly apiVersion: Endpoint['apiVersion'];
  readonly kind: Endpoint['payload'];
  readonly headers: AttemptRequest['versionHeaders'];
}
