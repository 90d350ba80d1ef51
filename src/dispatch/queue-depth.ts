/**
 * Counts how many deliveries wait, and for how long. Lanes that have everything in memory are counted there. The others
 * are counted in the store: first all of them up to a thousand rows each, then the large ones one by one. A round visits
 * a bounded number of rows; a lane that is not counted in this round keeps its last count.
 */
import type { Uuid } from '../domain/ids.ts';
import { inTurns } from '../domain/in-turns.ts';
import type { LaneReader, WaitingCount } from '../ports/delivery-queue.ts';
import type { Lane } from './lane.ts';

export interface WaitingDeliveries {
  fresh: number;
  retries: number;
  /** When the age of the oldest fresh delivery began. Infinity if nothing waits. */
  oldestFresh: number;
  /** When the first retry is or was due. Infinity if nothing waits. */
  firstDue: number;
}

export interface QueueDepth {
  /** Deliveries of endpoints that are being sent to. */
  readonly flowing: WaitingDeliveries;
  /** Deliveries of endpoints that are paused, have an open circuit, asked to wait or are blocked by their FIFO head. */
  readonly held: WaitingDeliveries;
  /** The part of `flowing` of each region that endpoints of this worker name. Null: the default region. */
  readonly regions: ReadonlyMap<string | null, WaitingDeliveries>;
}

const LANES_PER_READ = 100;
const FIRST_PASS_ROWS = 1_000;
const MAX_ROWS = 100_000;
/** Limit for each of the two passes. If the table is cached, a pass takes about 100 ms of the database's time. */
const ROWS_PER_ROUND = 200_000;

export class QueueDepthCounter {
  readonly #queue: Pick<LaneReader, 'countWaiting'>;
  /** The latest count of each lane, oldest first. */
  readonly #counts = new Map<Uuid, WaitingCount>();
  /** Lanes with more rows than the first pass counts, in the order in which they will be counted. */
  readonly #largeLanes = new Set<Uuid>();

  constructor(queue: Pick<LaneReader, 'countWaiting'>) {
    this.#queue = queue;
  }

  async count(lanes: readonly Lane[], now: number): Promise<QueueDepth> {
    const incomplete = new Set<Uuid>();
    for await (const turn of inTurns(lanes))
      for (const lane of turn) if (!lane.backlog.isComplete) incomplete.add(lane.id);
    for (const id of this.#counts.keys()) if (!incomplete.has(id)) this.#forget(id);
    await this.#countSmall(
      [...incomplete].filter((id) => !this.#counts.has(id)).concat([...this.#counts.keys()]),
    );
    await this.#countLarge();

    const depth = { flowing: noDeliveries(), held: noDeliveries(), regions: new Map() };
    for await (const turn of inTurns(lanes)) {
      for (const lane of turn) {
        const { backlog } = lane;
        const counted = backlog.isComplete ? undefined : this.#counts.get(lane.id);
        const isFlowing = lane.isFlowing && lane.holdUntil <= now && !backlog.isBlockedByHead;
        const sums = isFlowing ? [depth.flowing, regionIn(depth.regions, lane)] : [depth.held];
        for (const sum of sums) {
          addTo(sum, backlog);
          if (counted !== undefined) addTo(sum, onlyInStore(counted, lane));
        }
      }
    }
    return depth;
  }

  async #countSmall(ids: readonly Uuid[]): Promise<void> {
    let rows = 0;
    for (let i = 0; i < ids.length && rows < ROWS_PER_ROUND; i += LANES_PER_READ) {
      for (const count of await this.#queue.countWaiting(ids.slice(i, i + LANES_PER_READ), FIRST_PASS_ROWS)) {
        const { endpointId, fresh, retries } = count;
        rows += fresh + retries;
        if (fresh < FIRST_PASS_ROWS && retries < FIRST_PASS_ROWS) this.#largeLanes.delete(endpointId);
        else this.#largeLanes.add(endpointId);
        const before = this.#counts.get(endpointId);
        this.#recordCount({
          ...count,
          fresh: fresh < FIRST_PASS_ROWS ? fresh : Math.max(FIRST_PASS_ROWS, before?.fresh ?? 0),
          retries: retries < FIRST_PASS_ROWS ? retries : Math.max(FIRST_PASS_ROWS, before?.retries ?? 0),
        });
      }
    }
  }

  async #countLarge(): Promise<void> {
    let rows = 0;
    for (const id of [...this.#largeLanes]) {
      if (rows >= ROWS_PER_ROUND) return;
      for (const count of await this.#queue.countWaiting([id], MAX_ROWS)) {
        rows += count.fresh + count.retries;
        this.#recordCount(count);
      }
      this.#largeLanes.delete(id);
      this.#largeLanes.add(id);
    }
  }

  #recordCount(count: WaitingCount): void {
    this.#counts.delete(count.endpointId);
    this.#counts.set(count.endpointId, count);
  }

  #forget(id: Uuid): void {
    this.#counts.delete(id);
    this.#largeLanes.delete(id);
  }
}

const noDeliveries = (): WaitingDeliveries => ({
  fresh: 0,
  retries: 0,
  oldestFresh: Number.POSITIVE_INFINITY,
  firstDue: Number.POSITIVE_INFINITY,
});

function regionIn(
  regions: Map<string | null, WaitingDeliveries>,
  { endpoint: { region } }: Lane,
): WaitingDeliveries {
  let sum = regions.get(region);
  if (sum === undefined) {
    sum = noDeliveries();
    regions.set(region, sum);
  }
  return sum;
}

/** The counted deliveries without those in the lane's memory, in flight or unsettled. */
function onlyInStore(counted: WaitingCount, lane: Lane): WaitingDeliveries {
  const underWay = lane.inFlight + lane.unsettled;
  return {
    ...counted,
    fresh: Math.max(0, counted.fresh - lane.queuedFresh - underWay),
    retries: Math.max(0, counted.retries - lane.queuedRetries),
  };
}

function addTo(sum: WaitingDeliveries, part: Readonly<WaitingDeliveries>): void {
  sum.fresh += part.fresh;
  sum.retries += part.retries;
  sum.oldestFresh = Math.min(sum.oldestFresh, part.oldestFresh);
  sum.firstDue = Math.min(sum.firstDue, part.firstDue);
}
