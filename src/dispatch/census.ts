/**
 * How much waits, and for how long. Lanes that have everything in memory are simply asked. The others (more waits for
 * them than they hold, or they do not send and hold nothing) are counted in the database: many of them up to a thousand,
 * then those that have more one by one. A round visits a bounded number of rows; lanes whose turn it is not keep their
 * last figure.
 */
import type { Uuid } from '../domain/ids.ts';
import type { LaneReader, WaitingCount } from '../ports/delivery-queue.ts';
import type { Lane } from './lane.ts';

export interface Waiting {
  fresh: number;
  retries: number;
  /** When the age of the oldest fresh one began; infinity: there is none. */
  oldestFresh: number;
  /** When the retry that is most overdue was due; infinity: there is none. */
  firstDue: number;
}

export interface Census {
  /** Of endpoints that are being sent to. */
  readonly flowing: Waiting;
  /** Of those that are not: paused, circuit open, told to wait, blocked by their order. */
  readonly held: Waiting;
}

const LANES_PER_READ = 100;
const FEW = 1_000;
const MOST = 100_000;
/** Of each of the two kinds of counts. With the queue in memory that is some 100 ms of the database's time. */
const ROWS_PER_ROUND = 200_000;

export class CensusTaker {
  readonly #queue: Pick<LaneReader, 'countWaiting'>;
  /** Those whose count is oldest come first. */
  readonly #counted = new Map<Uuid, WaitingCount>();
  /** Those with more than a few, the one first that has waited longest to be counted further. */
  readonly #large = new Set<Uuid>();

  constructor(queue: Pick<LaneReader, 'countWaiting'>) {
    this.#queue = queue;
  }

  async take(lanes: readonly Lane[], now: number): Promise<Census> {
    const partly = new Set(lanes.filter((lane) => !lane.backlog.complete).map(({ id }) => id));
    for (const id of this.#counted.keys()) if (!partly.has(id)) this.#forget(id);
    await this.#countFew(
      [...partly].filter((id) => !this.#counted.has(id)).concat([...this.#counted.keys()]),
    );
    await this.#countLarge();

    const census = { flowing: nothing(), held: nothing() };
    for (const lane of lanes) {
      const { backlog } = lane;
      const counted = backlog.complete ? undefined : this.#counted.get(lane.id);
      const flows = lane.flows && lane.holdUntil <= now && !backlog.orderHolds;
      addTo(flows ? census.flowing : census.held, backlog);
      if (counted !== undefined) addTo(flows ? census.flowing : census.held, beyond(counted, lane));
    }
    return census;
  }

  async #countFew(ids: readonly Uuid[]): Promise<void> {
    let rows = 0;
    for (let i = 0; i < ids.length && rows < ROWS_PER_ROUND; i += LANES_PER_READ) {
      for (const count of await this.#queue.countWaiting(ids.slice(i, i + LANES_PER_READ), FEW)) {
        const { endpointId, fresh, retries } = count;
        rows += fresh + retries;
        if (fresh < FEW && retries < FEW) this.#large.delete(endpointId);
        else this.#large.add(endpointId);
        const before = this.#counted.get(endpointId);
        this.#remember({
          ...count,
          fresh: fresh < FEW ? fresh : Math.max(FEW, before?.fresh ?? 0),
          retries: retries < FEW ? retries : Math.max(FEW, before?.retries ?? 0),
        });
      }
    }
  }

  async #countLarge(): Promise<void> {
    let rows = 0;
    for (const id of [...this.#large]) {
      if (rows >= ROWS_PER_ROUND) return;
      for (const count of await this.#queue.countWaiting([id], MOST)) {
        rows += count.fresh + count.retries;
        this.#remember(count);
      }
      this.#large.delete(id);
      this.#large.add(id);
    }
  }

  #remember(count: WaitingCount): void {
    this.#counted.delete(count.endpointId);
    this.#counted.set(count.endpointId, count);
  }

  #forget(id: Uuid): void {
    this.#counted.delete(id);
    this.#large.delete(id);
  }
}

const nothing = (): Waiting => ({
  fresh: 0,
  retries: 0,
  oldestFresh: Number.POSITIVE_INFINITY,
  firstDue: Number.POSITIVE_INFINITY,
});

/** What the database has besides what the lane holds in memory, which includes what is on the wire. */
function beyond(counted: WaitingCount, lane: Lane): Waiting {
  const underWay = lane.inFlight + lane.unsettled;
  return {
    ...counted,
    fresh: Math.max(0, counted.fresh - lane.queuedFresh - underWay),
    retries: Math.max(0, counted.retries - lane.queuedRetries),
  };
}

function addTo(sum: Waiting, part: Readonly<Waiting>): void {
  sum.fresh += part.fresh;
  sum.retries += part.retries;
  sum.oldestFresh = Math.min(sum.oldestFresh, part.oldestFresh);
  sum.firstDue = Math.min(sum.firstDue, part.firstDue);
}
