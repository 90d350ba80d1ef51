/**
 * What was just committed goes to whoever owns its lane: ourselves, another process of this node, or whoever hears the
 * NOTIFY. All of these are hints; the row in the database is the truth.
 */
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Commit } from '../ports/hand-over.ts';
import type { Notifier, WakeScope } from '../ports/notifier.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { HandedDelivery } from './sibling-frames.ts';
import { Siblings, type SiblingsOptions } from './siblings.ts';

export interface HandOnOptions extends Pick<SiblingsOptions, 'clock' | 'ownedShards' | 'problem'> {
  readonly dispatcher: Pick<Dispatcher, 'offer' | 'offerOfSibling' | 'wake'>;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'refresh'>;
  readonly notifier: Pick<Notifier, 'publish'>;
  /** Null: this node has one process. */
  readonly siblings: Pick<SiblingsOptions, 'directory' | 'number'> | null;
}

export class HandOn {
  /** How many deliveries, by who was told. */
  readonly told = { self: 0, sibling: 0, notify: 0 };
  readonly #options: HandOnOptions;
  readonly #dispatcher: HandOnOptions['dispatcher'];
  readonly #siblings: Siblings | null;

  constructor(options: HandOnOptions) {
    this.#options = options;
    this.#dispatcher = options.dispatcher;
    this.#siblings =
      options.siblings &&
      new Siblings({
        ...options,
        ...options.siblings,
        received: (deliveries, commit) => this.#received(deliveries, commit),
      });
  }

  async start(): Promise<void> {
    await this.#siblings?.start();
  }

  stop(): void {
    this.#siblings?.stop();
  }

  /** Whoever hands on to us must know. */
  shardsChanged(): void {
    this.#siblings?.shardsChanged();
  }

  /** Null: some may have been committed by an earlier try. */
  committed(deliveries: readonly HandedDelivery[], commit: Commit | null): void {
    for (const { delivery, event } of deliveries) {
      if (commit === null) {
        // They may be gone again by now: let the lane look for itself.
        this.#dispatcher.wake(delivery.endpointId, 'sweep');
        this.#notify(delivery.endpointId, 'sweep');
      } else if (this.#dispatcher.offer(delivery, event)) {
        this.told.self += 1;
      } else if (this.#siblings?.offer(delivery, event, commit)) {
        this.told.sibling += 1;
      } else {
        this.#notify(delivery.endpointId, 'recent');
      }
    }
  }

  /**
   * They were matched with endpoints that we may not have yet. Whoever changes one and then publishes must not find that
   * it goes where it went before.
   */
  #received(deliveries: readonly HandedDelivery[], commit: Commit): void {
    const { endpoints, problem } = this.#options;
    if (commit.endpointVersion <= endpoints.version) return this.#offerAll(deliveries, commit);
    void endpoints
      .refresh()
      .catch((error) => problem('read endpoints that a sibling process knows', error))
      .then(() => this.#offerAll(deliveries, commit));
  }

  #offerAll(deliveries: readonly HandedDelivery[], { sentAt }: Commit): void {
    for (const { delivery, event } of deliveries) {
      // False: it was ours when they were told so, and is somebody else's by now.
      if (!this.#dispatcher.offerOfSibling(delivery, event, sentAt))
        this.#notify(delivery.endpointId, 'recent');
    }
  }

  #notify(endpointId: Uuid, scope: WakeScope): void {
    this.told.notify += 1;
    this.#options.notifier.publish('wake', [{ endpointIds: [endpointId], scope }]);
  }
}
