/** Hand-over between simulated processes of one node. A hub connects them; it may delay deliveries or lose them. */
import type { Clock } from '../domain/clock.ts';
import type { EventContent } from '../domain/event.ts';
import { NO_LOAD, type ProcessLoad, worseLoad } from '../domain/load-meter.ts';
import type { NewDelivery } from '../ports/event-store.ts';
import type { Commit, CommittedDelivery, HandOver, HandOverRoute } from '../ports/hand-over.ts';

type ReceivedHandler = (deliveries: readonly CommittedDelivery[], commit: Commit) => void;

export class MemoryHandOverHub {
  /** How long deliveries take to another process. Infinity: they are lost. */
  delayMs: () => number;
  /** False: the process has been silent for so long that the others no longer hand over to it. */
  isReachable: (member: MemoryHandOver) => boolean = () => true;
  readonly members = new Set<MemoryHandOver>();

  constructor(delayMs: () => number = () => 0) {
    this.delayMs = delayMs;
  }

  ownerOf(shard: number, except: MemoryHandOver): MemoryHandOver | undefined {
    for (const member of this.members)
      if (member !== except && member.announcedShards.has(shard)) return member;
    return undefined;
  }
}

export interface MemoryHandOverOptions {
  readonly hub: MemoryHandOverHub;
  readonly clock: Pick<Clock, 'after'>;
}

export class MemoryHandOver implements HandOver {
  readonly #options: MemoryHandOverOptions;
  #ownedShards: () => readonly number[] = () => [];
  #own: { readonly load: ProcessLoad } = { load: NO_LOAD };
  #announced = new Set<number>();
  #onReceived: ReceivedHandler = () => {};

  constructor(options: MemoryHandOverOptions) {
    this.#options = options;
  }

  get announcedShards(): ReadonlySet<number> {
    return this.#announced;
  }

  offer(shard: number, delivery: NewDelivery, event: EventContent, commit: Commit): HandOverRoute | null {
    const { hub } = this.#options;
    const owner = hub.ownerOf(shard, this);
    if (owner === undefined || !hub.isReachable(owner)) return null;
    const delayMs = hub.delayMs();
    if (Number.isFinite(delayMs)) owner.receiveAfter(delayMs, { delivery, event }, commit);
    return 'sibling';
  }

  /** The latest announcement wins: a previous owner may be unable to tell that it has lost the shard. */
  announceShards(): void {
    const { hub } = this.#options;
    if (!hub.members.has(this)) return;
    const owned = this.#ownedShards();
    const added = owned.filter((shard) => !this.#announced.has(shard));
    for (const member of hub.members) for (const shard of added) member.#announced.delete(shard);
    this.#announced = new Set(owned);
  }

  onReceived(handler: ReceivedHandler): void {
    this.#onReceived = handler;
  }

  /** Never calls the handler: no process notices deliveries that the hub loses. */
  onUndelivered(): void {}

  get siblingLoad(): ProcessLoad {
    const { hub } = this.#options;
    const siblings = [...hub.members].filter((member) => member !== this && hub.isReachable(member));
    return siblings.reduce((worst, member) => worseLoad(worst, member.#own.load), NO_LOAD);
  }

  async start(ownedShards: () => readonly number[], own = this.#own): Promise<void> {
    this.#ownedShards = ownedShards;
    this.#own = own;
    this.#options.hub.members.add(this);
    this.announceShards();
  }

  async stop(): Promise<void> {
    this.#options.hub.members.delete(this);
    this.#announced = new Set();
  }

  /** Called by the process that hands over. */
  receiveAfter(delayMs: number, delivery: CommittedDelivery, commit: Commit): void {
    this.#options.clock.after(delayMs, () => {
      if (this.#options.hub.members.has(this)) this.#onReceived([delivery], commit);
    });
  }
}
