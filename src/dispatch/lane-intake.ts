/** Puts deliveries that were just committed straight into their lanes, payload included, without reading the store. */
import type { Clock } from '../domain/clock.ts';
import { isMoving, shardOf, shardOfLane } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { NewDelivery } from '../ports/event-store.ts';
import type { Commit } from '../ports/hand-over.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership } from './ownership.ts';
import type { RecentIds } from './recent-ids.ts';
import { LOOK_BACK_MS, type Refill } from './refill.ts';
import type { Scheduler } from './scheduler.ts';
import { usefulCommitted, usefulItems } from './useful-items.ts';

/** A delivery whose commit was sent longer ago is loaded from the store instead. */
export const MAX_COMMIT_AGE_MS = 1_000;

export interface LaneIntakeOptions {
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'owns'>;
  readonly endpoints: Pick<EndpointDirectory, 'get'>;
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
   * shard. The answer to a commit or a hand-over may arrive late, when a sweep has already found the delivery. So a
   * delivery that was started recently is ignored, and one with an old commit is loaded from the store. So is one that was
   * committed before this worker took the lane over: the earlier owner may have sent it.
   */
  offer(delivery: NewDelivery, event: EventContent, { sentAt }: Commit): boolean {
    const { clock, lanes, budget, refill, scheduler, recentStarts } = this.#options;
    if (recentStarts.has(delivery.id)) return true;
    const lane = lanes.get(delivery.endpointId);
    if (lane === undefined) return this.#willOpen(delivery.endpointId);
    // The clocks of two processes differ, so a commit in the future is treated like an old one.
    const isOld =
      Math.abs(clock.now() - sentAt) >= MAX_COMMIT_AGE_MS || sentAt < lane.readProgress.takenOverAt;
    if (isOld || lane.isAdopted(delivery.id)) {
      refill.request(lane, 'sweep');
      return true;
    }
    if (lane.isFifo) {
      // Another process may have accepted an earlier delivery: only the store knows the order.
      refill.request(lane, 'recent');
      return true;
    }
    const hasRoom = lane.isFlowing && budget.hasRoom(lane.size);
    const now = clock.now();
    if (delivery.dueAt !== null) {
      const maxQueued = usefulItems(lane, budget, now);
      if (delivery.dueAt < lane.readProgress.retryHorizon && hasRoom && lane.queuedRetries < maxQueued)
        lane.addRetry(newItem(delivery, null, now));
      else lane.readProgress.leaveRetryInStore(delivery.dueAt);
    } else if (
      lane.readProgress.hasMoreFresh ||
      lane.queuedFresh >= usefulCommitted(lane, budget, now) ||
      !hasRoom
    ) {
      lane.readProgress.leaveFreshInStore(refill.seqBefore(LOOK_BACK_MS));
    } else {
      const holdsPayload = budget.hasRoomForPayload(event.data.length, lane.size, lane.queuedFresh);
      lane.addFresh(newItem(delivery, holdsPayload ? event : null, now));
      if (!mayCompleteBatch(lane)) return true;
    }
    scheduler.consider(lane);
    return true;
  }

  /** True if this worker is about to open the lane, and will load its deliveries then. */
  #willOpen(endpointId: Uuid): boolean {
    const { ownership, endpoints } = this.#options;
    const endpoint = endpoints.get(endpointId);
    if (endpoint === undefined) return ownership.owns(shardOf(endpointId));
    // If the lane moves to another worker, this one may have closed it already, and must notify the next owner.
    return !isMoving(endpoint) && ownership.owns(shardOfLane(endpoint));
  }
}

/** False if the fresh delivery that was just added makes no difference: the scheduler knows of its batch, which is not full yet. */
function mayCompleteBatch({ endpoint: { batch }, queuedFresh }: Lane): boolean {
  return batch === null || queuedFresh <= 1 || queuedFresh % batch.maxEvents === 0;
}

function newItem(delivery: NewDelivery, event: EventContent | null, now: number): LaneItem {
  return {
    delivery: {
      id: delivery.id,
      endpointId: delivery.endpointId,
      seq: 0,
      attempts: 0,
      attemptsBeforeReplay: 0,
      dueAt: delivery.dueAt,
      // If the clock was set back since the id was made, the age begins now: a batch would wait until that time.
      agesFrom: delivery.dueAt ?? Math.min(timeOfId(delivery.id), now),
      trigger: 'auto',
      lastErrorClass: null,
    },
    event,
    state: 'queued',
    isProbe: false,
    notBefore: 0,
    crashes: 0,
  };
}
