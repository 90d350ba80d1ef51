/**
 * The attempts of endpoints with batches, from the moment the scheduler has chosen the first delivery of a batch until the
 * results of all its events are recorded.
 *
 *   start ─▶ compose ─▶ record the composition ─▶ send ─▶ decide per event ─▶ settle every event ─▶ end
 *              │             │ changed in the       │
 *              │ not now:    │ store: drop          │ no valid lease, paused, over the rate limit: put back
 *              ▼ put back    ▼                      ▼
 *
 * The first delivery (the leader) is an ordinary attempt to the lane and the scheduler: it has the socket, the place in
 * `max_in_flight` and the turn of the rate limit. Its companions follow it.
 */
import type { Clock } from '../domain/clock.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import type { AttemptOutcome, Verdict } from '../domain/outcome.ts';
import type { HealthChange, SettledAttempt } from '../ports/delivery-queue.ts';
import type { AttemptRequest, PayloadConverter, RequestSender, ResultRecorder } from '../ports/stages.ts';
import type { AttemptObserver } from './attempts-options.ts';
import type { Batch, BatchComposer } from './batch-composer.ts';
import type { BatchRecorder } from './batch-recorder.ts';
import { decideBatch, type EventVerdict } from './batch-verdicts.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { Ownership } from './ownership.ts';
import type { Payloads } from './payloads.ts';
import type { RecentIds } from './recent-ids.ts';
import { newSettlement } from './records.ts';
import type { Scheduler } from './scheduler.ts';
import { chooseTimeout } from './slow-endpoints.ts';
import { usefulItems } from './useful-items.ts';

export interface BatchAttemptsOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ownership: Pick<Ownership, 'maySend'>;
  readonly payloads: Pick<Payloads, 'isExpunged'>;
  readonly composer: Pick<BatchComposer, 'compose'>;
  readonly recorder: Pick<BatchRecorder, 'recordStart' | 'recordEnd'>;
  readonly converter: Pick<PayloadConverter, 'deprecationHeadersOf'> | null;
  readonly sender: RequestSender;
  readonly settler: ResultRecorder;
  readonly scheduler: Pick<Scheduler, 'release'>;
  readonly laneKeeper: Pick<LaneKeeper, 'reload'>;
  readonly budget: LaneBudget;
  readonly observer: AttemptObserver;
  readonly recentStarts: Pick<RecentIds, 'add'>;
  readonly retryAfterCapMs: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Steps of a single attempt that the leader of a batch also needs. */
export interface LeaderAttempt {
  /** Makes the delivery dead without an attempt: its event no longer exists. */
  markExpired(lane: Lane, item: LaneItem): void;
  /** Puts the delivery back, and lets its lane pause for a moment. */
  putBack(lane: Lane, item: LaneItem): void;
  putBackUntil(lane: Lane, item: LaneItem, until: number): void;
  withdraw(lane: Lane, item: LaneItem, outcome: AttemptOutcome): void;
  drop(lane: Lane, item: LaneItem): void;
  /** Records the start of a probe or of suspected poison. */
  recordStart(lane: Lane, item: LaneItem, done: (result: StartResult) => void): void;
  updateHealth(lane: Lane, item: LaneItem, attempt: SettledAttempt, now: number): HealthChange | null;
  /** Counts results that are not recorded yet. */
  addUnsettled(count: number): void;
  end(lane: Lane, item: LaneItem): void;
}

/** `changed`: the delivery has changed in the store. `late`: do not send now, because recording took too long. */
export type StartResult = 'recorded' | 'changed' | 'late';

/** A prepared request waits at most this long for the rate limit of its endpoint. */
const MAX_PACE_MS = 1_000;
/** Do not send if recording the composition took longer than this. */
const MAX_RECORDING_MS = 2_000;

export class BatchAttempts {
  readonly #options: BatchAttemptsOptions;
  readonly #leaders: LeaderAttempt;
  /** Known batches that are being composed. */
  readonly #composing = new Set<Uuid>();

  constructor(options: BatchAttemptsOptions, leaders: LeaderAttempt) {
    this.#options = options;
    this.#leaders = leaders;
  }

  // --- before the request ---------------------------------------------------------------------------------

  start(lane: Lane, leader: LaneItem): void {
    const { composer, recorder, onProblem } = this.#options;
    const { batchId = null } = leader.delivery;
    // This delivery was loaded meanwhile. Another delivery of its batch is the leader.
    if (batchId !== null && this.#composing.has(batchId)) return this.#leaders.putBack(lane, leader);
    if (batchId !== null) this.#composing.add(batchId);
    composer
      .compose(lane, leader, (id) => recorder.recordEnd(id))
      .finally(() => batchId !== null && this.#composing.delete(batchId))
      .then(
        (composed) => {
          if (composed === 'gone') this.#leaders.markExpired(lane, leader);
          else if (!('until' in composed)) this.#recordStart(composed);
          else if (composed.until > 0) this.#leaders.putBackUntil(lane, leader, composed.until);
          else this.#leaders.putBack(lane, leader);
        },
        (error) => {
          onProblem('compose a batch', error);
          this.#leaders.putBack(lane, leader);
        },
      );
  }

  /** FIFO: the recorded composition holds the next owner back, so the leader needs no record of its own. */
  #recordStart(batch: Batch): void {
    const { lane, leader, items } = batch;
    for (const { delivery } of items) this.#options.recentStarts.add(delivery.id);
    if (!leader.isProbe && !leader.isRequested && !lane.isCareful) return this.#recordComposition(batch);
    this.#leaders.recordStart(lane, leader, (result) => {
      if (result === 'recorded') this.#recordComposition(batch);
      else if (result === 'changed') this.#drop(batch);
      else this.#putBack(batch);
    });
  }

  #recordComposition(batch: Batch): void {
    const { id, lane, items } = batch;
    const { clock, ownership, recorder } = this.#options;
    if (!ownership.maySend(lane.shard)) return this.#putBack(batch);
    const requestedAt = clock.monotonic();
    const members = items.map(({ delivery }) => ({ deliveryId: delivery.id, attempts: delivery.attempts }));
    recorder.recordStart(
      { id, endpointId: lane.id, shard: lane.shard, members, at: clock.now() },
      (maySend) => {
        if (!maySend) return this.#drop(batch);
        // From now on the batch stays together, even if it cannot be sent at this moment.
        for (const item of items) item.delivery = { ...item.delivery, batchId: id };
        if (clock.monotonic() - requestedAt > MAX_RECORDING_MS) this.#putBack(batch);
        else this.#send(batch);
      },
    );
  }

  #send(batch: Batch): void {
    const { lane, leader, events } = batch;
    const { ownership, clock, payloads, sender } = this.#options;
    const isHeld = !lane.isActive || (!leader.isProbe && !lane.breaker.allowsTraffic);
    if (isHeld || !ownership.maySend(lane.shard)) return this.#putBack(batch);
    const waitMs = lane.tryStart(clock.monotonic());
    if (waitMs > MAX_PACE_MS) return this.#putBack(batch);
    if (waitMs > 0) {
      clock.after(waitMs, () => this.#send(batch));
      return;
    }
    const { delivery } = leader;
    const request: AttemptRequest = {
      endpoint: lane.endpoint,
      event: events[0]!,
      // An endpoint with batches pins no version, so nothing is converted.
      versionHeaders: this.#options.converter?.deprecationHeadersOf(events) ?? null,
      batch: { id: batch.id, events },
      deliveryId: delivery.id,
      number: delivery.attempts + 1,
      waitingSince: delivery.dueAt ?? delivery.agesFrom,
      retryReason: delivery.trigger === 'auto' ? delivery.lastErrorClass : delivery.trigger,
      timeoutMs: chooseTimeout(lane, leader),
      maySend: () =>
        !lane.isClosed && ownership.maySend(lane.shard) && !events.some(({ id }) => payloads.isExpunged(id)),
    };
    sender.send(request, (outcome) => this.#onAnswered(batch, request, outcome));
  }

  // --- after the request ----------------------------------------------------------------------------------

  #onAnswered(batch: Batch, request: AttemptRequest, outcome: AttemptOutcome): void {
    const { lane, leader, items, events } = batch;
    if (outcome.withdrawn) {
      lane.batches.putBack(companionsOf(batch));
      return this.#leaders.withdraw(lane, leader, outcome);
    }
    const { clock, random, retryAfterCapMs, scheduler, observer } = this.#options;
    const now = clock.now();
    const deliveries = items.map(({ delivery }) => delivery);
    const { retry: policy, batch: settings } = lane.endpoint;
    const verdicts = decideBatch(batch.id, deliveries, outcome, {
      now,
      random,
      retryAfterCapMs,
      mayExpire: clock.isSteady ?? true,
      policy,
      settings,
      newId: () => newId(now),
    });
    const attempts = verdicts.map((verdict, index): SettledAttempt => {
      const { attempts: before, attemptsBeforeReplay, trigger } = deliveries[index]!;
      const tries = before + 1 - attemptsBeforeReplay;
      return { id: newId(now), outcome: verdict.outcome, trigger, eventType: events[index]!.type, tries };
    });
    const first = items.indexOf(leader);
    const health = this.#leaders.updateHealth(lane, leader, attempts[first]!, now);
    lane.responseTimes.recordAnswer(leader, now);
    lane.markAnswered(leader);
    const { batches } = lane;
    for (const item of items) {
      item.isStartCounted = false;
      if (item !== leader) batches.markAnswered(item);
    }
    scheduler.release(leader);
    observer.onAnswered(lane, leader, outcome, verdicts[first]!.verdict, events[first]!);
    this.#settleAll(batch, verdicts, attempts, health, request);
  }

  /** Records the result of every event. The batch ends when all are recorded. */
  #settleAll(
    batch: Batch,
    verdicts: readonly EventVerdict[],
    attempts: readonly SettledAttempt[],
    health: HealthChange | null,
    { endpoint }: AttemptRequest,
  ): void {
    const { settler, observer, recorder } = this.#options;
    const { items } = batch;
    const moved: boolean[] = items.map(() => false);
    let left = items.length;
    this.#leaders.addUnsettled(left);
    for (const [index, item] of items.entries()) {
      const { verdict } = verdicts[index]!;
      observer.onSettling(verdict);
      const { batchId } = verdicts[index]!;
      const settlement = { ...newSettlement(batch.lane, item, verdict, attempts[index]!), batchId };
      settler.settle(settlement, index === 0 ? health : null, (hasMoved) => {
        moved[index] = hasMoved;
        left -= 1;
        this.#leaders.addUnsettled(-1);
        if (left > 0) return;
        recorder.recordEnd(batch.id);
        this.#finish(batch, verdicts, attempts, moved);
        const isGone = verdicts.some((each) => each.verdict.kind === 'dead' && each.verdict.disableEndpoint);
        if (isGone) observer.onEndpointGone(endpoint, attempts[0]!.outcome.startedAt);
      });
    }
  }

  /** Reschedules from the last to the first, because a FIFO lane puts each retry at its head. */
  #finish(
    { lane, leader, items }: Batch,
    verdicts: readonly EventVerdict[],
    attempts: readonly SettledAttempt[],
    moved: readonly boolean[],
  ): void {
    const { budget, clock, laneKeeper } = this.#options;
    const maxQueued = usefulItems(lane, budget, clock.now());
    for (let index = items.length - 1; index >= 0; index -= 1) {
      const item = items[index]!;
      const { verdict, batchId } = verdicts[index]!;
      const target = item === leader ? lane : lane.batches;
      if (!moved[index] || verdict.kind !== 'retry') target.finish(item, moved[index]);
      else {
        const hasRoom = budget.hasRoom(lane.size) && lane.queuedRetries < maxQueued;
        target.reschedule(item, nextDelivery(item, verdict, attempts[index]!, batchId), hasRoom);
      }
    }
    this.#leaders.end(lane, leader);
    if (moved.includes(false)) {
      // A FIFO lane may not have the right head in memory any more.
      if (lane.isFifo) lane.clearQueue();
      laneKeeper.reload(lane, 'all');
    }
  }

  // --- without a request ----------------------------------------------------------------------------------

  #putBack(batch: Batch): void {
    batch.lane.batches.putBack(companionsOf(batch));
    this.#leaders.putBack(batch.lane, batch.leader);
  }

  #drop(batch: Batch): void {
    batch.lane.batches.drop(companionsOf(batch));
    this.#leaders.drop(batch.lane, batch.leader);
  }
}

const companionsOf = ({ items, leader }: Batch): LaneItem[] => items.filter((item) => item !== leader);

function nextDelivery(
  { delivery }: LaneItem,
  verdict: Extract<Verdict, { kind: 'retry' }>,
  { outcome }: SettledAttempt,
  batchId: WaitingDelivery['batchId'],
): WaitingDelivery {
  return {
    ...delivery,
    attempts: delivery.attempts + 1,
    attemptsBeforeReplay: delivery.attemptsBeforeReplay + (verdict.isUncounted ? 1 : 0),
    dueAt: verdict.dueAt,
    trigger: 'auto',
    lastErrorClass: outcome.error?.class ?? null,
    batchId: batchId ?? null,
  };
}
