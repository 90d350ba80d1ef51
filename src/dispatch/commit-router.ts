/**
 * Brings deliveries that were just committed to the worker that owns their lane: to our own lanes, to a sibling process,
 * or by a notification to whichever process owns it. All of these are hints; the store has the deliveries.
 */
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Commit, CommittedDelivery, HandOver } from '../ports/hand-over.ts';
import type { Notifier, WakeScope } from '../ports/notifier.ts';
import type { LaneIntake } from './lane-intake.ts';
import type { LaneKeeper } from './lane-keeper.ts';

export interface CommitRouterOptions {
  readonly intake: Pick<LaneIntake, 'offer'>;
  readonly laneKeeper: Pick<LaneKeeper, 'wake'>;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'refresh'>;
  readonly notifier: Pick<Notifier, 'publish'>;
  /** Null: this node has one process. */
  readonly handOver: Pick<HandOver, 'offer'> | null;
  readonly onProblem: (what: string, error: unknown) => void;
}

export class CommitRouter {
  /** Number of deliveries by the way they took. */
  readonly routed = { self: 0, sibling: 0, notify: 0 };
  readonly #options: CommitRouterOptions;

  constructor(options: CommitRouterOptions) {
    this.#options = options;
  }

  /** Routes the deliveries of a commit. Null: an earlier try may have committed them a while ago. */
  routeCommitted(deliveries: readonly CommittedDelivery[], commit: Commit | null): void {
    if (commit === null) return this.#routeUncertain(deliveries);
    const { intake, handOver } = this.#options;
    const elsewhere: Uuid[] = [];
    for (const { delivery, event } of deliveries) {
      if (intake.offer(delivery, event, commit)) this.routed.self += 1;
      else if (handOver?.offer(delivery, event, commit)) this.routed.sibling += 1;
      else elsewhere.push(delivery.endpointId);
    }
    this.#notifyOwners(elsewhere, 'recent');
  }

  /** The deliveries may be settled by now, and only the store knows: their owners look for them. */
  #routeUncertain(deliveries: readonly CommittedDelivery[]): void {
    const endpointIds = deliveries.map(({ delivery }) => delivery.endpointId);
    for (const id of endpointIds) this.#options.laneKeeper.wake(id, 'sweep');
    this.#notifyOwners(endpointIds, 'sweep');
  }

  /** Takes deliveries that a sibling has committed. */
  routeFromSibling(deliveries: readonly CommittedDelivery[], commit: Commit): void {
    const { endpoints, onProblem } = this.#options;
    // They were matched with endpoints that this process may not have yet: a changed URL must apply to them. A lower
    // version is no older one if the store was restored.
    if (commit.endpointVersion === endpoints.version) return this.#offerFromSibling(deliveries, commit);
    void endpoints
      .refresh()
      .catch((error) => onProblem('read endpoints that a sibling process knows', error))
      .then(() => this.#offerFromSibling(deliveries, commit));
  }

  /** Something of this endpoint became due, or what blocked it is gone: tell its owner. */
  wake(endpointId: Uuid): void {
    const { laneKeeper, notifier } = this.#options;
    laneKeeper.wake(endpointId, 'recent');
    notifier.publish('wake', [{ endpointIds: [endpointId], scope: 'recent' }]);
  }

  #offerFromSibling(deliveries: readonly CommittedDelivery[], commit: Commit): void {
    // Not taken: this process owned the shard when it announced it, and has lost it since.
    const elsewhere = deliveries.filter(
      ({ delivery, event }) => !this.#options.intake.offer(delivery, event, commit),
    );
    this.#notifyOwners(
      elsewhere.map(({ delivery }) => delivery.endpointId),
      'recent',
    );
  }

  #notifyOwners(endpointIds: readonly Uuid[], scope: WakeScope): void {
    if (endpointIds.length === 0) return;
    this.routed.notify += endpointIds.length;
    this.#options.notifier.publish('wake', [{ endpointIds, scope }]);
  }
}
