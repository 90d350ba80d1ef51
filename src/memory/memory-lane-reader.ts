import { CLOSED_BREAKER } from '../domain/breaker.ts';
import { firstIdAt, timeOfId, type Uuid } from '../domain/ids.ts';
import type {
  LaneReader,
  LaneState,
  LoadedDelivery,
  ProbeRequester,
  WaitingCount,
} from '../ports/delivery-queue.ts';
import type { MemoryStore } from './memory-store.ts';
import type { QueueRow } from './rows.ts';

/** A row is fresh or scheduled. Rows of FIFO endpoints are always fresh, even if they wait for a retry. */
const isFresh = (row: QueueRow): boolean => row.dueAt === null || row.fifo;

const isRequestedProbe = (row: QueueRow): boolean => row.probeAfterAttempts === row.attempts;

export const bySeq = (a: QueueRow, b: QueueRow): number => a.seq - b.seq;
const byDueTime = (a: QueueRow, b: QueueRow): number => a.dueAt! - b.dueAt!;

export function createMemoryLaneReader(store: MemoryStore): LaneReader {
  return {
    async loadLanes(requests) {
      return new Map(
        requests.map(({ endpointId, freshAfter, dueFrom, limit }) => {
          const rows = store.queue.of(endpointId);
          const barrier = fifoBarrier(store, endpointId);
          const fresh =
            freshAfter === null
              ? []
              : rows
                  .filter((row) => isFresh(row) && row.seq > freshAfter && (!row.fifo || row.seq <= barrier))
                  .sort(bySeq);
          const due =
            dueFrom === null
              ? []
              : rows.filter((row) => !isFresh(row) && row.dueAt! >= dueFrom).sort(byDueTime);
          return [
            endpointId,
            { fresh: fresh.slice(0, limit).map(toLoaded), due: due.slice(0, limit).map(toLoaded) },
          ];
        }),
      );
    },
    async loadStates(endpointIds) {
      return new Map(endpointIds.map((id) => [id, stateOf(store, id)]));
    },
    async loadProbes() {
      return store.queue.all().filter(isRequestedProbe).map(toLoaded);
    },
    async listRecent(since) {
      const recent = store.queue.all().filter(({ id }) => id >= firstIdAt(since));
      return [...new Set(recent.map(({ endpointId }) => endpointId))];
    },
    async countWaiting(endpointIds, max) {
      return endpointIds.map((endpointId) => countWaiting(store.queue.of(endpointId), endpointId, max));
    },
  };
}

/** FIFO deliveries with a higher number wait for deliveries of their tenant that are accepted but not written. */
function fifoBarrier(store: MemoryStore, endpointId: Uuid): number {
  let barrier = Number.POSITIVE_INFINITY;
  if (store.fanOutSlices.size === 0) return barrier;
  const tenant = store.endpoints.get(endpointId)?.endpoint.tenant;
  for (const slice of store.unwrittenSlices)
    if (slice.hasFifo && slice.tenant === tenant) barrier = Math.min(barrier, slice.seq);
  return barrier;
}

export function createMemoryProbeRequester(store: MemoryStore): ProbeRequester {
  return {
    async requestProbe(endpointId) {
      const rows = store.queue.of(endpointId);
      if (rows.some(isRequestedProbe)) return null;
      const isSendable = ({ dueAt, attempts }: QueueRow): boolean =>
        dueAt === null || dueAt <= store.now() || attempts > 0;
      const head = rows.filter((row) => row.fifo).sort(bySeq)[0];
      const oldest = head ?? rows.filter(isSendable).sort((a, b) => (a.id < b.id ? -1 : 1))[0];
      if (oldest === undefined) return null;
      oldest.probeAfterAttempts = oldest.attempts;
      return oldest.id;
    },
  };
}

export function toLoaded(row: QueueRow): LoadedDelivery {
  return {
    id: row.id,
    endpointId: row.endpointId,
    seq: row.seq,
    attempts: row.attempts,
    attemptsBeforeReplay: row.attemptsBeforeReplay,
    dueAt: row.dueAt,
    agesFrom: agesFromOf(row),
    trigger: row.trigger,
    lastErrorClass: row.lastErrorClass,
    startedAt: row.startedAt,
    carefulStarts: row.carefulStarts,
    batchId: row.batchId ?? null,
  };
}

const agesFromOf = (row: QueueRow): number => row.agesFrom ?? timeOfId(row.id);

function stateOf(store: MemoryStore, endpointId: Uuid): LaneState {
  const health = store.health.get(endpointId);
  const endpoint = store.endpoints.get(endpointId);
  const shard = store.shardOfLane(endpointId);
  const { takenAt } = store.shards[shard]!;
  return {
    breaker: health?.breaker ?? CLOSED_BREAKER,
    failingSince: health?.failingSince ?? null,
    holdUntil: health?.holdUntil ?? null,
    adaptive: health?.adaptive ?? null,
    blocked: [...store.deadLetters.values()].some(
      (letter) => letter.endpointId === endpointId && letter.blocksLane && !letter.replaying,
    ),
    isNew:
      endpoint !== undefined &&
      takenAt !== null &&
      endpoint.createdAt > takenAt &&
      endpoint.enabledSince === null &&
      endpoint.endpoint.placement === 0,
    shard: endpoint === undefined ? null : shard,
  };
}

function countWaiting(rows: readonly QueueRow[], endpointId: Uuid, max: number): WaitingCount {
  const fresh = rows.filter(isFresh).sort(bySeq);
  const retries = rows.filter((row) => !isFresh(row)).sort(byDueTime);
  return {
    endpointId,
    fresh: Math.min(fresh.length, max),
    retries: Math.min(retries.length, max),
    oldestFresh: fresh[0] === undefined ? Number.POSITIVE_INFINITY : agesFromOf(fresh[0]),
    firstDue: retries[0]?.dueAt ?? Number.POSITIVE_INFINITY,
  };
}
