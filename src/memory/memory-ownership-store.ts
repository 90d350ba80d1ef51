import { SHARDS } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Notifier } from '../ports/notifier.ts';
import type {
  OwnershipSession,
  OwnershipStore,
  OwnershipTimes,
  Renewal,
  StoreFacts,
  TakenShard,
} from '../ports/ownership-store.ts';
import { StoreError } from '../ports/store-error.ts';
import type { MemoryStore } from './memory-store.ts';
import type { StoreSession } from './rows.ts';

/** Clocks of two machines may run at different rates, so the store waits a fifth longer than the lease lasts. */
const LEASE_MARGIN = 1.2;
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
          session,
          renewedAt: store.now(),
          stopping: false,
        });
      return createSession(options, session);
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
    renew: (workerId, { stopping }) => run(() => renew(store, workerId, stopping)),
    removeDeadWorkers: (workerId, times) => run(() => removeDeadWorkers(store, workerId, times)),
    takeShards: (workerId, crashWindowMs) => run(() => takeShards(store, workerId, crashWindowMs)),
    countSurplusShards: (workerId) => run(() => Math.max(0, countOwned(store, workerId) - fairShare(store))),
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
});

function renew(store: MemoryStore, workerId: Uuid, stopping: boolean): Renewal | null {
  const worker = store.workers.get(workerId);
  if (worker === undefined) return null;
  const previousMark = worker.renewedAt;
  worker.renewedAt = store.now();
  worker.stopping = stopping;
  const shards = store.shards.flatMap(({ owner, epoch }, shard) =>
    owner === workerId ? [{ shard, epoch }] : [],
  );
  return { ...factsOf(store), shards, mark: worker.renewedAt, previousMark };
}

function removeDeadWorkers(
  store: MemoryStore,
  workerId: Uuid,
  { leaseMs, deadAfterMs }: OwnershipTimes,
): { worker: string; shard: number }[] {
  const now = store.now();
  const freed: { worker: string; shard: number }[] = [];
  for (const worker of [...store.workers.values()]) {
    // Renewed before the clock stepped back: this counts as a renewal of now.
    worker.renewedAt = Math.min(worker.renewedAt, now);
    const silenceMs = now - worker.renewedAt;
    const isDead = silenceMs > deadAfterMs || (silenceMs > leaseMs * LEASE_MARGIN && !worker.session.isOpen);
    if (worker.id === workerId || !isDead) continue;
    store.workers.delete(worker.id);
    for (const [shard, row] of store.shards.entries()) {
      if (row.owner !== worker.id) continue;
      row.owner = null;
      row.epoch = store.nextEpoch();
      row.uncleanAt = [now, ...row.uncleanAt].slice(0, KEPT_CRASHES);
      freed.push({ worker: worker.name, shard });
    }
  }
  return freed;
}

function takeShards(store: MemoryStore, workerId: Uuid, crashWindowMs: number): TakenShard[] {
  const worker = store.workers.get(workerId);
  if (worker === undefined || worker.stopping) return [];
  const now = store.now();
  let room = fairShare(store) - countOwned(store, workerId);
  const taken: TakenShard[] = [];
  for (const [shard, row] of store.shards.entries()) {
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

/** How many shards each worker would have if all had the same number, rounded up. */
function fairShare(store: MemoryStore): number {
  const workers = [...store.workers.values()].filter((worker) => !worker.stopping).length;
  return Math.ceil(SHARDS / Math.max(1, workers));
}

const countOwned = (store: MemoryStore, workerId: Uuid): number =>
  store.shards.filter(({ owner }) => owner === workerId).length;

/** Releases these shards. Null: all shards of the worker. */
function release(store: MemoryStore, workerId: Uuid, shards: ReadonlySet<number> | null): void {
  for (const [shard, row] of store.shards.entries())
    if (row.owner === workerId && (shards === null || shards.has(shard))) row.owner = null;
}
