import { isMoving, SHARDS } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import { DEFAULT_REGION } from '../domain/region.ts';
import type { Notifier } from '../ports/notifier.ts';
import {
  digestOf,
  type OwnershipSession,
  type OwnershipStore,
  type Renewal,
  type RenewalOptions,
  type SilentWorker,
  type StoreFacts,
  type TakenShard,
} from '../ports/ownership-store.ts';
import { StoreError } from '../ports/store-error.ts';
import type { MemoryStore } from './memory-store.ts';
import type { ShardRow, StoreSession, WorkerRow } from './rows.ts';

const KEPT_CRASHES = 8;

export interface MemoryOwnershipOptions {
  readonly store: MemoryStore;
  /** Tells the other workers about free shards. */
  readonly announceFreeShards: () => void;
}

export function createMemoryOwnershipStore(options: MemoryOwnershipOptions): OwnershipStore {
  const { store } = options;
  return {
    async connect(worker, onLost) {
      const session: StoreSession = { isOpen: true, onLost };
      const known = store.workers.get(worker.id);
      // A known worker keeps its `renewedAt`: only a renewal proves that it is alive.
      if (known !== undefined) known.session = session;
      else
        store.workers.set(worker.id, {
          id: worker.id,
          name: worker.name,
          region: store.regionNumber(worker.region),
          session,
          renewedAt: store.now(),
          renewals: 0,
          stopping: false,
        });
      return createSession(options, session);
    },
    async moveLanes(workerId, lanes) {
      for (const { id, placement } of lanes) {
        const endpoint = store.endpoints.get(id)?.endpoint;
        if (endpoint?.placement !== placement || !isMoving(endpoint)) continue;
        const owner = store.ownerOf(id);
        if (owner === null || owner === workerId) store.moveLane(id);
      }
    },
    readFacts: async () => factsOf(store),
    readTimeline: async () => null,
  };
}

/** Announces free shards through a notifier. */
export const announceThrough =
  (notifier: Pick<Notifier, 'publish'>): (() => void) =>
  () =>
    notifier.publish('shards', [null]);

function createSession(
  { store, announceFreeShards }: MemoryOwnershipOptions,
  session: StoreSession,
): OwnershipSession {
  const run = <T>(statement: () => T): Promise<T> =>
    session.isOpen
      ? Promise.resolve(statement())
      : Promise.reject(new StoreError('outcome_unknown', 'The session has ended.'));
  return {
    renew: (workerId, options) => run(() => renew(store, workerId, options)),
    removeDeadWorkers: (silent) => run(() => removeDeadWorkers(store, silent)),
    takeShards: (workerId, crashWindowMs, emptyRegion) =>
      run(() => takeShards(store, workerId, crashWindowMs, emptyRegion)),
    countSurplusShards: (workerId) => run(() => countSurplus(store, workerId)),
    releaseShards: (workerId, shards) =>
      run(() => {
        release(store, workerId, new Set(shards));
        announceFreeShards();
      }),
    unregister: (workerId) =>
      run(() => {
        store.workers.delete(workerId);
        release(store, workerId, null);
        announceFreeShards();
      }),
    close: () => {
      session.isOpen = false;
    },
  };
}

const factsOf = (store: MemoryStore): StoreFacts => ({
  now: store.now(),
  endpointVersion: store.endpointVersion,
  lastSeq: store.lastSeq,
  outboxSeq: store.outboxSeq,
});

function renew(store: MemoryStore, workerId: Uuid, options: RenewalOptions): Renewal | null {
  const worker = store.workers.get(workerId);
  if (worker === undefined) return null;
  const previousMark = worker.renewals;
  worker.renewals += 1;
  worker.renewedAt = store.now();
  worker.stopping = options.stopping;
  const shards = store.shards.flatMap(({ owner, epoch }, shard) =>
    owner === workerId ? [{ shard, epoch }] : [],
  );
  const isBalanced =
    countSurplus(store, workerId) === 0 &&
    shardsOf(store, worker.region).every(([, { owner }]) => owner !== null);
  const others = [...store.workers.values()].filter(({ id }) => id !== workerId);
  const { count, sumOfEpochs } = digestOf(shards.map(({ epoch }) => epoch));
  const isKnown = options.known?.count === count && options.known.sumOfEpochs === sumOfEpochs;
  return {
    ...factsOf(store),
    shards: isKnown ? null : shards,
    mark: worker.renewals,
    previousMark,
    expungedEvents: [...store.expungedEvents],
    others: others.map((other) => ({
      id: other.id,
      renewal: renewalOf(other),
      silentMs: store.now() - other.renewedAt,
    })),
    isBalanced,
    emptyRegions: options.listsEmptyRegions ? emptyRegions(store) : null,
  };
}

const renewalOf = ({ renewals, renewedAt }: WorkerRow): string => `${renewals} ${renewedAt}`;

function removeDeadWorkers(
  store: MemoryStore,
  silent: readonly SilentWorker[],
): { worker: string; shard: number }[] {
  const freed: { worker: string; shard: number }[] = [];
  for (const { id, renewal, isOverdue } of silent) {
    const worker = store.workers.get(id);
    if (worker === undefined || renewalOf(worker) !== renewal) continue;
    if (!isOverdue && worker.session.isOpen) continue;
    store.workers.delete(id);
    for (const [shard, row] of store.shards.entries()) {
      if (row.owner !== worker.id) continue;
      row.owner = null;
      row.epoch = store.nextEpoch();
      row.diedAt = store.visibleNow();
      row.uncleanAt = [store.now(), ...row.uncleanAt].slice(0, KEPT_CRASHES);
      freed.push({ worker: worker.name, shard });
    }
  }
  return freed;
}

function takeShards(
  store: MemoryStore,
  workerId: Uuid,
  crashWindowMs: number,
  emptyRegion: number | null,
): TakenShard[] {
  const worker = store.workers.get(workerId);
  if (worker === undefined || worker.stopping) return [];
  const region = emptyRegion ?? worker.region;
  if (region !== worker.region && !emptyRegions(store).includes(region)) return [];
  const now = store.now();
  let room = fairShare(store, worker.region) - countOwned(store, workerId, region);
  const taken: TakenShard[] = [];
  for (const [shard, row] of shardsOf(store, region)) {
    if (room <= 0) break;
    if (row.owner !== null) continue;
    room -= 1;
    row.owner = workerId;
    row.takenAt = now;
    row.epoch = store.nextEpoch();
    const crashes = row.uncleanAt.filter((at) => at > now - crashWindowMs && at <= now).length;
    taken.push({ shard, epoch: row.epoch, crashes });
  }
  return taken;
}

/** The workers of a region that are not stopping. */
const countWorkers = (store: MemoryStore, region: number): number =>
  [...store.workers.values()].filter((worker) => !worker.stopping && worker.region === region).length;

const emptyRegions = (store: MemoryStore): number[] =>
  [...store.regions.keys()].filter(
    (region) => region !== DEFAULT_REGION && countWorkers(store, region) === 0,
  );

/** How many shards each worker of the region would have if all had the same number, rounded up. */
const fairShare = (store: MemoryStore, region: number): number =>
  Math.ceil(SHARDS / Math.max(1, countWorkers(store, region)));

const shardsOf = (store: MemoryStore, region: number): [number, ShardRow][] =>
  [...store.shards.entries()].slice(region * SHARDS, (region + 1) * SHARDS);

const countOwned = (store: MemoryStore, workerId: Uuid, region: number): number =>
  shardsOf(store, region).filter(([, { owner }]) => owner === workerId).length;

function countSurplus(store: MemoryStore, workerId: Uuid): number {
  const region = store.workers.get(workerId)?.region;
  return region === undefined
    ? 0
    : Math.max(0, countOwned(store, workerId, region) - fairShare(store, region));
}

/** Releases these shards. Null: all shards of the worker. */
function release(store: MemoryStore, workerId: Uuid, shards: ReadonlySet<number> | null): void {
  for (const [shard, row] of store.shards.entries())
    if (row.owner === workerId && (shards === null || shards.has(shard))) row.owner = null;
}
