/** Puts deliveries that were just committed straight into their lanes, payload included, without reading the store. */
import type { Clock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { timeOfId } from '../domain/ids.ts';
import type { NewDelivery } from '../ports/accept-log.ts';
import type { Commit } from '../ports/hand-over.ts';
import type { LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership } from './ownership.ts';
import type { RecentIds } from './recent-ids.ts';
import { LOOK_BACK_MS, type Refill } from './refill.ts';
import type { Scheduler } from './scheduler.ts';

/** A delivery whose commit was sent longer ago is loaded from the store instead. */
export const MAX_COMMIT_AGE_MS = 1_000;

export interface LaneIntakeOptions {
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'owns'>;
  readonly lanes: LaneRegistry;
  readonly budget: LaneBudget;
  readonly refill: Refill;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly recentStarts: Pick<RecentIds, 'has'>;
}

export class LaneIntake {
  readonly #options: LaneIntakeOptions;

  constructor(options: LaneIntakeOptions) {
    this.#options = options;
  }

  /**
   * Takes a delivery that this process or a sibling has just committed. Returns false if this worker does not own its
   * shard. The answer to a commit and the hand-over of a sibling may arrive late, when a sweep has found the delivery and
   * it is sent and settled: ignore deliveries that were started recently, and load an old one from the store.
   */
  offer(delivery: NewDelivery, event: EventContent, { sentAt }: Commit): boolean {
    const { clock, ownership, lanes, budget, refill, scheduler, recentStarts } = this.#options;
    if (recentStarts.has(delivery.id)) return true;
    const lane = lanes.get(delivery.endpointId);
    if (lane === undefined) return ownership.owns(shardOf(delivery.endpointId));
    // The clocks of two processes differ: a commit in the future is as doubtful as an old one.
    if (Math.abs(clock.now() - sentAt) >= MAX_COMMIT_AGE_MS) {
      refill.request(lane, 'sweep');
      return true;
    }
    if (lane.fifo) {
      // Another process may have accepted an earlier one: only the store knows the order.
      refill.request(lane, 'recent');
      return true;
    }
    const hasRoom = lane.isFlowing && budget.hasRoom;
    if (delivery.dueAt !== null) {
      if (delivery.dueAt < lane.read.retryHorizon && hasRoom && lane.queuedRetries < budget.laneItems)
        lane.addRetry(newItem(delivery, null));
      else lane.read.leaveRetryInStore(delivery.dueAt);
    } else if (lane.read.moreFresh || lane.queuedFresh >= budget.laneItems || !hasRoom) {
      lane.read.leaveFreshInStore(refill.seqBefore(LOOK_BACK_MS));
    } else {
      lane.addFresh(newItem(delivery, budget.hasRoomForPayload(event.data.length) ? event : null));
    }
    scheduler.consider(lane);
    return true;
  }
}

function newItem(delivery: NewDelivery, event: EventContent | null): LaneItem {
  return {
    delivery: {
      id: delivery.id,
      endpointId: delivery.endpointId,
      seq: 0,
      attempts: 0,
      attemptsBeforeReplay: 0,
      dueAt: delivery.dueAt,
      agesFrom: delivery.dueAt ?? timeOfId(delivery.id),
      trigger: 'auto',
      lastErrorClass: null,
    },
    event,
    state: 'queued',
    probe: false,
    notBefore: 0,
    crashes: 0,
  };
}
