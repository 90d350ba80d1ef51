/**
 * Routes deliveries that were just committed to the worker that owns their lane: directly into a lane of this process,
 * through a connection to another process, through Redis, or by a notification. All of these are hints; the store has the deliveries.
 */
import type { Clock } from '../domain/clock.ts';
import { shardOf, shardOfLane } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Commit, CommittedDelivery, HandOver } from '../ports/hand-over.ts';
import type { Notifier, WakeScope } from '../ports/notifier.ts';
import type { DeliveryRouter } from '../ports/stages.ts';
import { type LaneIntake, MAX_COMMIT_AGE_MS } from './lane-intake.ts';
import type { LaneKeeper } from './lane-keeper.ts';

export interface CommitRouterOptions {
  readonly intake: Pick<LaneIntake, 'offer'>;
  readonly laneKeeper: Pick<LaneKeeper, 'wake' | 'loadProbes'>;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'refresh' | 'get'>;
  readonly notifier: Pick<Notifier, 'publish'>;
  /** Null: this node has one process, and hand-over between nodes is switched off. */
  readonly handOver: Pick<HandOver, 'offer'> | null;
  readonly clock: Pick<Clock, 'now'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

export class CommitRouter implements DeliveryRouter {
  /** How many deliveries took each route. A delivery whose hand-over failed counts again as `notify`. */
  readonly routeCounts = { self: 0, sibling: 0, redis: 0, notify: 0 };
  /** How many deliveries were handed over and probably did not arrive. */
  undelivered = 0;
  readonly #options: CommitRouterOptions;

  constructor(options: CommitRouterOptions) {
    this.#options = options;
  }

  /** Routes the deliveries of a commit. `commit` null: an earlier try may have committed them a while ago. */
  routeCommitted(deliveries: readonly CommittedDelivery[], commit: Commit | null): void {
    if (commit === null) return this.#routeUncertain(deliveries);
    const { intake, handOver } = this.#options;
    const elsewhere: Uuid[] = [];
    for (const { delivery, event } of deliveries) {
      if (intake.offer(delivery, event, commit)) {
        this.routeCounts.self += 1;
        continue;
      }
      const route = handOver?.offer(this.#shardOf(delivery.endpointId), delivery, event, commit) ?? null;
      if (route === null) elsewhere.push(delivery.endpointId);
      else this.routeCounts[route] += 1;
    }
    this.#notifyOwners(elsewhere, 'recent');
  }

  /** The deliveries may be settled by now, so their owners must look for them in the store. */
  #routeUncertain(deliveries: readonly CommittedDelivery[]): void {
    const endpointIds = deliveries.map(({ delivery }) => delivery.endpointId);
    for (const id of endpointIds) this.#options.laneKeeper.wake(id, 'sweep');
    this.#notifyOwners(endpointIds, 'sweep');
  }

  /** Routes deliveries that a sibling has committed and handed over. */
  routeFromSibling(deliveries: readonly CommittedDelivery[], commit: Commit): void {
    const { endpoints, onProblem } = this.#options;
    // The sibling may have matched them with newer endpoints. Read those first, so that a changed URL applies. After a
    // restore the newer version may be the lower one, so compare for equality only.
    if (commit.endpointVersion === endpoints.version) return this.#offerFromSibling(deliveries, commit);
    void endpoints
      .refresh()
      .then(() => this.#offerFromSibling(deliveries, commit))
      .catch((error) => {
        onProblem('read endpoints after a hand-over', error);
        // The lanes load the deliveries when the store answers again, and the endpoints with them.
        this.#routeUncertain(deliveries);
      });
  }

  /** Notifies the owners of deliveries that were handed over and probably did not arrive. */
  notifyUndelivered(deliveries: readonly CommittedDelivery[], { sentAt }: Commit): void {
    this.undelivered += deliveries.length;
    const isRecent = this.#options.clock.now() - sentAt < MAX_COMMIT_AGE_MS;
    this.#notifyOwners(
      deliveries.map(({ delivery }) => delivery.endpointId),
      isRecent ? 'recent' : 'sweep',
    );
  }

  /** Tells the owner of the endpoint to look for deliveries: one became due, or the lane is no longer blocked. */
  wake(endpointId: Uuid): void {
    const { laneKeeper, notifier } = this.#options;
    laneKeeper.wake(endpointId, 'recent');
    notifier.publish('wake', [{ endpointIds: [endpointId], scope: 'recent' }]);
  }

  /** Tells the owner of the endpoint that a probe was requested. */
  requestProbe(): void {
    const { laneKeeper, notifier } = this.#options;
    laneKeeper.loadProbes();
    notifier.publish('probes', [null]);
  }

  #offerFromSibling(deliveries: readonly CommittedDelivery[], commit: Commit): void {
    // Deliveries whose shards this process has lost since it announced them.
    const elsewhere = deliveries.filter(
      ({ delivery, event }) => !this.#options.intake.offer(delivery, event, commit),
    );
    this.#notifyOwners(
      elsewhere.map(({ delivery }) => delivery.endpointId),
      'recent',
    );
  }

  #shardOf(endpointId: Uuid): number {
    const endpoint = this.#options.endpoints.get(endpointId);
    return endpoint === undefined ? shardOf(endpointId) : shardOfLane(endpoint);
  }

  #notifyOwners(endpointIds: readonly Uuid[], scope: WakeScope): void {
    if (endpointIds.length === 0) return;
    this.routeCounts.notify += endpointIds.length;
    this.#options.notifier.publish('wake', [{ endpointIds, scope }]);
  }
}
