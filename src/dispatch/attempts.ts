/**
 * One delivery from "its turn" to "the database knows": the only place where requests are started.
 *
 *   taken ─▶ payload at hand ─▶ (written down) ─▶ ownership proven ─▶ sent ─▶ answered ─▶ settled
 *     │             │                 │                  │
 *     │ too old,    │ cannot be       │ not ours         │ not proven:
 *     │ killed its  │ read now:       │ any more:        │ back into the lane
 *     │ worker      │ back            │ forgotten        │
 *     ▼ dead
 */
import type { Signal } from '../domain/breaker.ts';
import type { Clock } from '../domain/clock.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { eventIdOfDelivery, newId, type Uuid } from '../domain/ids.ts';
import { noteOfCircuit } from '../domain/operational.ts';
import type { AttemptOutcome, DeadReason, Verdict } from '../domain/outcome.ts';
import type { RetryPolicy } from '../domain/retry.ts';
import type { HealthChange, Settlement, Start } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface AttemptRequest {
  readonly endpoint: Endpoint;
  readonly event: EventContent;
  readonly deliveryId: Uuid;
  readonly number: number;
  readonly retryReason: string | null;
  /** Since when it was due. */
  readonly waitingSince: number;
  /** Asked again when the connection is open: making one may take seconds. */
  readonly mayLeave: () => boolean;
}

/** What the other stages do for this one; `app.ts` connects them. */
export interface Stages {
  send(request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void;
  decide(outcome: AttemptOutcome, delivery: WaitingDelivery, policy: RetryPolicy): Verdict;
  signalOf(outcome: AttemptOutcome): Signal;
  expiresAt(delivery: WaitingDelivery, policy: RetryPolicy): number;
  settle(settlement: Settlement, health: HealthChange | null, done: (moved: boolean) => void): void;
}

export interface AttemptsOptions {
  readonly clock: Clock;
  readonly stages: Stages;
  readonly mayStart: (shard: number) => boolean;
  readonly readPayload: (eventId: Uuid, done: (event: EventContent | null | undefined) => void) => void;
  readonly writeBeforeSend: (start: Start, done: (mayLeave: boolean) => void) => void;
  readonly retryAfterCapMs: number;
  /** Whether a lane may keep one more delivery in memory. */
  readonly hasRoom: (lane: Lane) => boolean;
  readonly events: AttemptEvents;
}

export interface AttemptEvents {
  /** The socket is free again. */
  freed(lane: Lane, item: LaneItem): void;
  /** Nothing of it is left in this worker, or it waits in its lane again. */
  ended(lane: Lane, item: LaneItem): void;
  /** The lane does not know the truth about this delivery any more: read it again. */
  doubtful(lane: Lane): void;
  answered(lane: Lane, item: LaneItem, outcome: AttemptOutcome, verdict: Verdict, event: EventContent): void;
  circuitChanged(lane: Lane): void;
  /** It answered 410 to a request that was started then. */
  gone(endpoint: Endpoint, askedAt: number): void;
}

/** In careful mode: how often a delivery may be started without ever being heard of again. */
const MAX_CAREFUL_STARTS = 2;
/** A payload that cannot be read, or a proof that is missing: not again at once. */
const BACK_OFF_MS = 100;
/** Those that were held up together leave one after another, at their endpoint's rate; not for longer than this. */
const LONGEST_PACE_MS = 1_000;
/** A probe is given this much more than the request's own deadline before another may be made. */
const PROBE_MARGIN_MS = 3_000;
/** So long after a start was asked to be written down it may still leave: less than others wait beyond its deadline. */
const LEAVES_WITHIN_MS = 2_000;

export class Attempts {
  readonly #options: AttemptsOptions;
  /**
   * One that was on the wire when its worker died, and is again. Only one such at a time: of those that were merely
   * beside the culprit each proves itself, and at one more death only one of them is under way.
   */
  #onTrial: LaneItem | null = null;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  start(lane: Lane, item: LaneItem): void {
    const { clock, stages } = this.#options;
    if (clock.now() > stages.expiresAt(item.delivery, lane.endpoint.retry))
      return this.#bury(lane, item, 'expired');
    if (item.carefulStarts >= MAX_CAREFUL_STARTS) return this.#bury(lane, item, 'worker_crash');
    if (item.carefulStarts > 0 && lane.careful) {
      if (this.#onTrial !== null) {
        // It waits, not its lane: the one before it may hang until its deadline.
        item.notBefore = Math.max(item.notBefore, clock.now() + BACK_OFF_MS);
        return this.#return(lane, item);
      }
      this.#onTrial = item;
    }
    if (item.event !== null) return this.#prepare(lane, item, item.event);
    this.#options.readPayload(eventIdOfDelivery(item.delivery.id), (event) => {
      if (event === undefined) this.#putBack(lane, item);
      else if (event === null) this.#bury(lane, item, 'expired');
      else this.#prepare(lane, item, event);
    });
  }

  #prepare(lane: Lane, item: LaneItem, event: EventContent): void {
    // notBefore: an earlier owner may have had it on the wire, and settled it since; the write finds out.
    if (!lane.fifo && !item.probe && !lane.careful && item.notBefore === 0)
      return this.#send(lane, item, event);
    if (!this.#options.mayStart(lane.shard)) return this.#putBack(lane, item);
    const deadline = this.#options.clock.now() + lane.endpoint.timeoutMs + PROBE_MARGIN_MS;
    const start: Start = {
      deliveryId: item.delivery.id,
      attempts: item.delivery.attempts,
      // Written down before and then not sent: that start is counted already, and nothing was killed by it.
      careful: lane.careful && !item.startCounted,
      shard: lane.shard,
      probe: item.probe ? { endpointId: lane.id, breaker: lane.breaker.probeStarted(deadline) } : null,
    };
    const askedAt = this.#options.clock.monotonic();
    this.#options.writeBeforeSend(start, (mayLeave) => {
      const late = this.#options.clock.monotonic() - askedAt > LEAVES_WITHIN_MS;
      item.startCounted = mayLeave && (item.startCounted || start.careful);
      if (mayLeave) return late ? this.#putBack(lane, item) : this.#send(lane, item, event);
      this.#abandonProbe(lane, item);
      lane.dropped(item);
      this.#options.events.freed(lane, item);
      this.#ended(lane, item);
      this.#options.events.doubtful(lane);
    });
  }

  #send(lane: Lane, item: LaneItem, event: EventContent): void {
    // Paused, or its circuit opened, while the payload was being read.
    const held = !lane.active || (!item.probe && !lane.breaker.allowsTraffic);
    if (held || !this.#options.mayStart(lane.shard)) return this.#putBack(lane, item);
    const waitMs = lane.leave(this.#options.clock.monotonic());
    if (waitMs > LONGEST_PACE_MS) return this.#putBack(lane, item);
    if (waitMs > 0) {
      this.#options.clock.after(waitMs, () => this.#send(lane, item, event));
      return;
    }
    const { delivery } = item;
    const request: AttemptRequest = {
      endpoint: lane.endpoint,
      event,
      deliveryId: delivery.id,
      number: delivery.attempts + 1,
      waitingSince: delivery.dueAt ?? delivery.agesFrom,
      retryReason: delivery.trigger === 'auto' ? delivery.lastErrorClass : delivery.trigger,
      mayLeave: () => !lane.closed && this.#options.mayStart(lane.shard),
    };
    this.#options.stages.send(request, (outcome) => this.#answered(lane, item, request, outcome));
  }

  #ended(lane: Lane, item: LaneItem): void {
    if (this.#onTrial === item) this.#onTrial = null;
    this.#options.events.ended(lane, item);
  }

  #abandonProbe(lane: Lane, item: LaneItem): void {
    if (item.probe) lane.breaker.probeAbandoned(this.#options.clock.now() + BACK_OFF_MS);
  }

  #putBack(lane: Lane, item: LaneItem): void {
    lane.holdUntil = Math.max(lane.holdUntil, this.#options.clock.now() + BACK_OFF_MS);
    this.#return(lane, item);
  }

  #return(lane: Lane, item: LaneItem): void {
    this.#abandonProbe(lane, item);
    lane.returned(item);
    this.#options.events.freed(lane, item);
    this.#ended(lane, item);
  }

  #bury(lane: Lane, item: LaneItem, reason: DeadReason): void {
    this.#abandonProbe(lane, item);
    lane.answered(item);
    this.#options.events.freed(lane, item);
    this.#settle(lane, item, { kind: 'dead', reason, disableEndpoint: false }, null, null);
  }

  #answered(lane: Lane, item: LaneItem, { endpoint, event }: AttemptRequest, outcome: AttemptOutcome): void {
    const { clock, stages, events } = this.#options;
    if (outcome.withdrawn) return this.#putBack(lane, item);
    // The settlement sets the count back.
    if (lane.careful) item.startCounted = false;
    const verdict = stages.decide(outcome, item.delivery, lane.endpoint.retry);
    const attemptId = newId(clock.now());
    const health = this.#learn(lane, item, outcome, attemptId, event.type);
    lane.answered(item);
    events.freed(lane, item);
    events.answered(lane, item, outcome, verdict, event);
    const { trigger, attempts, attemptsBeforeReplay } = item.delivery;
    const tries = attempts + 1 - attemptsBeforeReplay;
    const attempt = { id: attemptId, outcome, trigger, eventType: event.type, tries };
    this.#settle(lane, item, verdict, attempt, health, () => {
      // As it was when it was asked: it may lead elsewhere by now.
      if (verdict.kind === 'dead' && verdict.disableEndpoint) events.gone(endpoint, outcome.startedAt);
    });
  }

  /** What the answer says about the endpoint; returns what has to be remembered beyond this process. */
  #learn(
    lane: Lane,
    item: LaneItem,
    outcome: AttemptOutcome,
    attemptId: Uuid,
    eventType: string,
  ): HealthChange | null {
    const { clock, stages, events, retryAfterCapMs } = this.#options;
    const now = clock.now();
    const signal = stages.signalOf(outcome);
    const wasFailing = lane.failingSince !== null;
    const before = lane.breaker.record;
    const changed = lane.breaker.heard(signal, now, item.probe);
    if (signal === 'success') {
      lane.failingSince = null;
      lane.succeeded(now);
    } else if (signal === 'failure') {
      lane.failingSince ??= now;
    }
    if (changed) {
      if (lane.breaker.allowsTraffic) lane.slowStart();
      events.circuitChanged(lane);
    }
    if (outcome.statusCode === 429 && outcome.retryAfterMs !== null) {
      lane.holdUntil = Math.max(lane.holdUntil, now + Math.min(outcome.retryAfterMs, retryAfterCapMs));
    }
    if (!changed && signal !== 'failure' && !(signal === 'success' && wasFailing)) return null;
    const health = { endpointId: lane.id, breaker: lane.breaker.record, failingSince: lane.failingSince };
    if (!changed) return health;
    const note = noteOfCircuit({
      id: attemptId,
      endpointId: lane.id,
      eventType,
      before,
      after: health.breaker,
      outcome,
    });
    return note === null ? health : { ...health, circuitNote: note };
  }

  #settle(
    lane: Lane,
    item: LaneItem,
    verdict: Verdict,
    attempt: Settlement['attempt'],
    health: HealthChange | null,
    written: () => void = () => {},
  ): void {
    const { stages, events } = this.#options;
    const blocksLane = verdict.kind === 'dead' && lane.fifo && lane.endpoint.fifoOnDead === 'block';
    if (blocksLane) lane.blocked = true;
    const settlement: Settlement = {
      deliveryId: item.delivery.id,
      endpointId: lane.id,
      tenant: lane.endpoint.tenant,
      attemptsBefore: item.delivery.attempts,
      verdict,
      blocksLane,
      fifo: lane.fifo,
      agesFrom: item.delivery.agesFrom,
      attempt,
    };
    stages.settle(settlement, health, (moved) => {
      if (moved && verdict.kind === 'retry') {
        const next: WaitingDelivery = {
          ...item.delivery,
          attempts: item.delivery.attempts + 1,
          dueAt: verdict.dueAt,
          trigger: 'auto',
          lastErrorClass: attempt?.outcome.error?.class ?? null,
        };
        lane.rescheduled(item, next, this.#options.hasRoom(lane));
      } else {
        lane.ended(item, moved);
      }
      written();
      this.#ended(lane, item);
      if (!moved) events.doubtful(lane);
    });
  }
}
