/**
 * One attempt, from the moment the scheduler has chosen a delivery until its result is recorded. The only place where
 * requests are sent.
 *
 *   start ─▶ load the payload ─▶ convert ─▶ record the start ─▶ send ─▶ decide ─▶ settle
 *     │           │                 │           │ (FIFO, probe,  │          ▲
 *     │ expired,  │ not readable:   │ busy:     │  poison)       │ no valid lease, paused, over the rate limit:
 *     │ poison:   │ put back        │ put back  │ changed in the │ put back │
 *     ▼ dead      ▼                 │           ▼ store: drop    ▼          │
 *                                   └ failed: conversion_failed, not sent ──┘
 */
import { decide, expiresAt } from '../domain/decide.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { eventIdOfDelivery, newId } from '../domain/ids.ts';
import { type AttemptOutcome, type DeadReason, unsentOutcome, type Verdict } from '../domain/outcome.ts';
import type { HealthChange, SettledAttempt, Settlement } from '../ports/delivery-queue.ts';
import type { AttemptRequest } from '../ports/stages.ts';
import type { AttemptsOptions, ReadyPayload } from './attempts-options.ts';
import { BatchAttempts, type StartResult } from './batch-attempts.ts';
import { isDebounced } from './debounce.ts';
import { updateHealth } from './endpoint-health.ts';
import type { Lane, LaneItem } from './lane.ts';
import { newSettlement, newStart } from './records.ts';
import { chooseTimeout } from './slow-endpoints.ts';
import { latestHoldAt } from './stored-times.ts';

/** A delivery that was on the wire in this many crashes of its worker is poison. */
const MAX_CRASHES = 3;
/** How long a lane waits after a payload could not be read or the lease was not valid. */
const BACK_OFF_MS = 100;
/** How long a lane waits after this machine had no descriptor, port, buffer or memory for a request. */
const SHORTAGE_BACK_OFF_MS = 500;
/** How long a lane waits while too many conversions wait, or the store of converted payloads does not answer. */
const BUSY_BACK_OFF_MS = 500;
/** How long a slow lane waits while the payloads in memory exceed their budget. */
const MEMORY_BACK_OFF_MS = 1_000;
/** A prepared request waits at most this long for the rate limit of its endpoint. */
const MAX_PACE_MS = 1_000;
/**
 * Do not send if recording the start took longer than this: the next owner waits only a little longer than the
 * deadline.
 */
const MAX_RECORDING_MS = 2_000;

export class Attempts {
  readonly #options: AttemptsOptions;
  /** The suspected poison that is on the wire. Only one at a time, so that the next crash identifies it. */
  #suspect: LaneItem | null = null;
  #unsettled = 0;
  readonly #endListeners: (() => void)[] = [];

  readonly #batches: BatchAttempts;

  constructor(options: AttemptsOptions) {
    this.#options = options;
    this.#batches = new BatchAttempts(options, {
      markExpired: (lane, item) => this.#markDead(lane, item, 'expired'),
      putBack: (lane, item) => this.#putBack(lane, item),
      putBackUntil: (lane, item, until) => this.#putBackUntil(lane, item, until),
      withdraw: (lane, item, outcome) => this.#withdraw(lane, item, outcome),
      drop: (lane, item) => this.#drop(lane, item),
      recordStart: (lane, item, done) => this.#recordStart(lane, item, done),
      updateHealth: (...change) => this.#updateHealth(...change),
      addUnsettled: (count) => {
        this.#unsettled += count;
      },
      end: (lane, item) => this.#endAttempt(lane, item),
    });
  }

  /** How many results are not recorded yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /** Resolves when the next attempt of any lane ends, or after `withinMs`. */
  waitForEnd(withinMs: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(withinMs, resolve);
      this.#endListeners.push(resolve, cancel);
    });
  }

  // --- before the request ---------------------------------------------------------------------------------

  start(lane: Lane, item: LaneItem): void {
    const { clock, recentStarts, debounce } = this.#options;
    recentStarts.add(item.delivery.id);
    item.sendBefore = Number.POSITIVE_INFINITY;
    if (clock.isSteady !== false && clock.now() > expiresAt(item.delivery, lane.endpoint.retry))
      return this.#markDead(lane, item, 'expired');
    if (item.crashes >= MAX_CRASHES) return this.#markDead(lane, item, 'worker_crash');
    if (item.crashes > 0 && lane.isCareful) {
      // Only the delivery waits, not its lane: the suspect on the wire may hang until its deadline.
      if (this.#suspect !== null) return this.#putBackUntil(lane, item, clock.now() + BACK_OFF_MS);
      this.#suspect = item;
    }
    if (lane.endpoint.batch !== null) this.#batches.start(lane, item);
    else if (isDebounced(lane, item)) this.#debounce(lane, item);
    // A decision that began while the endpoint had other settings might end the delivery while it is sent.
    else if (lane.endpoint.debounce === null && debounce.isDeciding(lane)) this.#putBack(lane, item);
    else this.#loadPayload(lane, item);
  }

  /** Asks the store whether the delivery is sent, waits, or is superseded by another one with its key. */
  #debounce(lane: Lane, item: LaneItem): void {
    const { clock, debounce } = this.#options;
    debounce.decide(lane, item).then(
      ({ kind, until, debounced, askedAt }) => {
        item.debounced = debounced;
        item.sendBefore = askedAt + MAX_RECORDING_MS;
        if (kind === 'send' && item.sendBefore < clock.monotonic()) this.#putBack(lane, item);
        else if (kind === 'send') this.#loadPayload(lane, item);
        else if (kind === 'wait') this.#putBackUntil(lane, item, until);
        else this.#drop(lane, item);
      },
      (error) => {
        this.#options.onProblem('debounce a delivery', error);
        this.#putBack(lane, item);
      },
    );
  }

  #loadPayload(lane: Lane, item: LaneItem): void {
    const eventId = eventIdOfDelivery(item.delivery.id);
    // The lane may still hold the expunged payload. The store has ended the delivery already, so `markDead` changes nothing there.
    if (this.#options.payloads.isExpunged(eventId)) return this.#markDead(lane, item, 'expired');
    if (item.event !== null) return this.#prepare(lane, item, item.event);
    const { budget, clock } = this.#options;
    // Fast endpoints free their memory soon. A slow endpoint may have one request on the wire nevertheless.
    if (budget.isOutOfBytes && lane.inFlight > 1 && !lane.responseTimes.isKnownToBeFast(clock.now()))
      return this.#putBack(lane, item, MEMORY_BACK_OFF_MS);
    this.#options.payloads.load(eventId, (event) => {
      if (event === undefined) this.#putBack(lane, item);
      else if (event === null) this.#markDead(lane, item, 'expired');
      else {
        lane.holdPayload(item, event);
        this.#prepare(lane, item, event);
      }
    });
  }

  /** A careful lane records the start first, so that a conversion that crashes the worker is identified like other poison. */
  #prepare(lane: Lane, item: LaneItem, event: EventContent): void {
    if (lane.isCareful)
      this.#recordStartIfNeeded(lane, item, (isLate) =>
        this.#convert(lane, item, event, (payload) =>
          isLate() ? this.#putBack(lane, item) : this.#send(lane, item, payload),
        ),
      );
    else
      this.#convert(lane, item, event, (payload) =>
        this.#recordStartIfNeeded(lane, item, () => this.#send(lane, item, payload)),
      );
  }

  #convert(lane: Lane, item: LaneItem, event: EventContent, next: (payload: ReadyPayload) => void): void {
    const { converter } = this.#options;
    const { endpoint } = lane;
    const { apiVersion, payload: kind } = endpoint;
    if (converter === null || !converter.needsConversion(endpoint))
      return next({ event, headers: null, apiVersion, kind });
    converter.convert({ endpoint, event, delivery: item.delivery }, (result) => {
      if (result.kind === 'ready') {
        if (result.event !== event) this.#countConverted(item, result.event.data.length);
        next({ event: result.event, headers: result.headers, apiVersion, kind });
      } else if (result.kind === 'busy') this.#waitForConverter(lane, item, result.pausedForMs);
      else if (result.kind === 'gone') this.#markDead(lane, item, 'expired');
      else this.#failConversion(lane, item, event, result.message);
    });
  }

  /** Counts a converted payload, beside the published one, in the budget for payloads until the attempt ends. */
  #countConverted(item: LaneItem, bytes: number): void {
    this.#options.budget.bytes += bytes - (item.convertedBytes ?? 0);
    item.convertedBytes = bytes;
  }

  /** If a converter is paused, deliveries that do not need it go on. A FIFO lane waits, to keep the order. */
  #waitForConverter(lane: Lane, item: LaneItem, pausedForMs = 0): void {
    if (pausedForMs === 0 || lane.isFifo) this.#putBack(lane, item, Math.max(pausedForMs, BUSY_BACK_OFF_MS));
    else this.#putBackUntil(lane, item, this.#options.clock.now() + pausedForMs);
  }

  /** A failed attempt without a request. It says nothing about the receiver. */
  #failConversion(lane: Lane, item: LaneItem, event: EventContent, message: string): void {
    const { ownership, clock } = this.#options;
    if (!lane.isActive || !ownership.maySend(lane.shard)) return this.#putBack(lane, item);
    const { endpoint } = lane;
    const outcome = unsentOutcome(endpoint.url, { class: 'conversion_failed', message }, clock.now());
    this.#onAnswered(lane, item, { endpoint, event }, outcome);
  }

  /** Passes a function to `next` that returns whether it has become too late to send. */
  #recordStartIfNeeded(lane: Lane, item: LaneItem, next: (isLate: () => boolean) => void): void {
    // `notBefore` is set: an earlier owner may have settled the delivery. Recording the start then fails.
    // A requested delivery may have been settled since the request was read.
    const mustRecord =
      lane.isFifo || item.isProbe || item.isRequested || lane.isCareful || item.notBefore > 0;
    if (!mustRecord) return next(() => false);
    const { clock } = this.#options;
    const requestedAt = clock.monotonic();
    this.#recordStart(lane, item, (result) => {
      if (result === 'recorded') next(() => clock.monotonic() - requestedAt > MAX_RECORDING_MS);
      else if (result === 'changed') this.#drop(lane, item);
      else this.#putBack(lane, item);
    });
  }

  #recordStart(lane: Lane, item: LaneItem, done: (result: StartResult) => void): void {
    const { ownership, clock, startLog } = this.#options;
    if (!ownership.maySend(lane.shard)) return done('late');
    const start = newStart(lane, item, clock.now());
    const requestedAt = clock.monotonic();
    startLog.record(start, (maySend) => {
      item.isStartCounted = maySend && (item.isStartCounted || start.careful);
      if (!maySend) done('changed');
      else done(clock.monotonic() - requestedAt > MAX_RECORDING_MS ? 'late' : 'recorded');
    });
  }

  #send(lane: Lane, item: LaneItem, payload: ReadyPayload): void {
    const { ownership, clock, payloads, sender } = this.#options;
    // The endpoint may have been paused, or its circuit opened, since the delivery was chosen.
    const isHeld = !lane.isActive || (!item.isProbe && !lane.breaker.allowsTraffic);
    const { endpoint } = lane;
    // The endpoint may pin another version by now. The next start converts to that one.
    const isOutdated = payload.apiVersion !== endpoint.apiVersion || payload.kind !== endpoint.payload;
    const now = clock.monotonic();
    const isLate = item.sendBefore! < now;
    if (isHeld || isOutdated || isLate || !ownership.maySend(lane.shard)) return this.#putBack(lane, item);
    const waitMs = lane.tryStart(now);
    if (waitMs > MAX_PACE_MS) return this.#putBack(lane, item);
    if (waitMs > 0) {
      clock.after(waitMs, () => this.#send(lane, item, payload));
      return;
    }
    const { delivery } = item;
    const request: AttemptRequest = {
      endpoint,
      event: payload.event,
      versionHeaders: payload.headers,
      deliveryId: delivery.id,
      number: delivery.attempts + 1,
      waitingSince: delivery.dueAt ?? delivery.agesFrom,
      retryReason: delivery.trigger === 'auto' ? delivery.lastErrorClass : delivery.trigger,
      ...(item.debounced && { debounced: item.debounced }),
      timeoutMs: chooseTimeout(lane, item),
      // Its payload may be expunged while the request is prepared.
      maySend: () =>
        !lane.isClosed && ownership.maySend(lane.shard) && !payloads.isExpunged(payload.event.id),
    };
    sender.send(request, (outcome) => this.#onAnswered(lane, item, request, outcome));
  }

  // --- after the request ----------------------------------------------------------------------------------

  #onAnswered(
    lane: Lane,
    item: LaneItem,
    { endpoint, event }: Pick<AttemptRequest, 'endpoint' | 'event'>,
    outcome: AttemptOutcome,
  ): void {
    if (outcome.withdrawn) return this.#withdraw(lane, item, outcome);
    const { clock, random, retryAfterCapMs, scheduler, observer } = this.#options;
    const now = clock.now();
    const { delivery } = item;
    const context = { now, random, retryAfterCapMs, mayExpire: clock.isSteady ?? true };
    const verdict = decide(outcome, delivery, lane.endpoint.retry, context);
    const attempt: SettledAttempt = {
      id: newId(now),
      outcome,
      trigger: delivery.trigger,
      eventType: event.type,
      tries: delivery.attempts + 1 - delivery.attemptsBeforeReplay,
    };
    const health = this.#updateHealth(lane, item, attempt, now);
    // Settling resets the count in the store.
    item.isStartCounted = false;
    if (outcome.error?.class !== 'conversion_failed') lane.responseTimes.recordAnswer(item, now);
    lane.markAnswered(item);
    scheduler.release(item);
    observer.onAnswered(lane, item, outcome, verdict, event);
    this.#settle(lane, item, verdict, attempt, health, endpoint);
  }

  #updateHealth(lane: Lane, item: LaneItem, attempt: SettledAttempt, now: number): HealthChange | null {
    const { observer, retryAfterCapMs } = this.#options;
    const { health, isCircuitChanged, areLimitsChanged } = updateHealth(lane, item, attempt, now);
    if (areLimitsChanged) observer.onLimitsChanged(lane);
    if (isCircuitChanged) {
      // A probe needs only a few candidates. The rest of the queue would only take memory.
      if (!lane.breaker.allowsTraffic) lane.clearQueue();
      observer.onCircuitChanged(lane);
    }
    const { statusCode, retryAfterMs } = attempt.outcome;
    if (statusCode !== 429 || retryAfterMs === null) return health;
    const holdUntil = now + Math.min(retryAfterMs, retryAfterCapMs);
    lane.holdUntil = Math.max(lane.holdUntil, holdUntil);
    // The hold is stored, so that a worker that takes the endpoint over waits too. If nothing else must be stored, the circuit in the
    // store stays as it is: somebody may have recorded the start of a probe meanwhile.
    const hold = { holdUntil, latestHold: latestHoldAt(now, retryAfterCapMs) };
    return { ...(health ?? { endpointId: lane.id, breaker: null, failingSince: null }), ...hold };
  }

  /** `endpoint` is the endpoint as it was when the request was sent. It may have another URL by now. */
  #settle(
    lane: Lane,
    item: LaneItem,
    verdict: Verdict,
    attempt: SettledAttempt | null,
    health: HealthChange | null,
    endpoint: Endpoint,
  ): void {
    const { settler, observer } = this.#options;
    const settlement = newSettlement(lane, item, verdict, attempt);
    this.#unsettled += 1;
    observer.onSettling(verdict);
    settler.settle(settlement, health, (moved) => {
      this.#unsettled -= 1;
      this.#onSettled(lane, item, settlement, moved);
      if (attempt !== null && verdict.kind === 'dead' && verdict.disableEndpoint)
        observer.onEndpointGone(endpoint, attempt.outcome.startedAt);
    });
  }

  #onSettled(lane: Lane, item: LaneItem, { verdict, attempt }: Settlement, hasMoved: boolean): void {
    const { budget, laneKeeper } = this.#options;
    if (hasMoved && verdict.kind === 'retry') {
      const next = {
        ...item.delivery,
        attempts: item.delivery.attempts + 1,
        dueAt: verdict.dueAt,
        trigger: 'auto',
        lastErrorClass: attempt?.outcome.error?.class ?? null,
      } as const;
      lane.reschedule(item, next, budget.hasRoom(lane.size) && lane.queuedRetries < budget.laneItems);
    } else {
      lane.finish(item, hasMoved);
    }
    this.#endAttempt(lane, item);
    if (!hasMoved) laneKeeper.reload(lane, 'all');
  }

  // --- without a request ----------------------------------------------------------------------------------

  /** Makes the delivery dead without an attempt. */
  #markDead(lane: Lane, item: LaneItem, reason: DeadReason): void {
    this.#abandonProbe(lane, item);
    lane.markAnswered(item);
    this.#options.scheduler.release(item);
    const verdict: Verdict = { kind: 'dead', reason, disableEndpoint: false };
    this.#settle(lane, item, verdict, null, null, lane.endpoint);
  }

  /** The request was not sent, or does not count. A shortage of this machine says nothing about the receiver. */
  #withdraw(lane: Lane, item: LaneItem, { shortage }: AttemptOutcome): void {
    if (shortage === undefined) return this.#putBack(lane, item);
    this.#options.observer.onShortage(shortage);
    this.#putBack(lane, item, SHORTAGE_BACK_OFF_MS);
  }

  /** Puts the delivery back into its lane, which pauses for a moment. */
  #putBack(lane: Lane, item: LaneItem, backOffMs = BACK_OFF_MS): void {
    lane.holdUntil = Math.max(lane.holdUntil, this.#options.clock.now() + backOffMs);
    this.#putBackUntil(lane, item, 0);
  }

  #putBackUntil(lane: Lane, item: LaneItem, notBefore: number): void {
    item.notBefore = Math.max(item.notBefore, notBefore);
    this.#abandonProbe(lane, item);
    lane.putBack(item);
    this.#options.scheduler.release(item);
    this.#endAttempt(lane, item);
  }

  /** Forgets a delivery whose state in the store has changed, and loads the lane again. */
  #drop(lane: Lane, item: LaneItem): void {
    const { scheduler, laneKeeper } = this.#options;
    this.#abandonProbe(lane, item);
    lane.drop(item);
    scheduler.release(item);
    this.#endAttempt(lane, item);
    laneKeeper.reload(lane, 'all');
  }

  #abandonProbe(lane: Lane, item: LaneItem): void {
    if (item.isProbe && !item.isRequested) lane.breaker.abandonProbe(this.#options.clock.now() + BACK_OFF_MS);
  }

  #endAttempt(lane: Lane, item: LaneItem): void {
    if (this.#suspect === item) this.#suspect = null;
    if (item.convertedBytes) this.#countConverted(item, 0);
    for (const resolve of this.#endListeners.splice(0)) resolve();
    this.#options.laneKeeper.onAttemptEnded(lane);
  }
}
