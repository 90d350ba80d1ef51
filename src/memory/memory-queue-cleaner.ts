import { firstIdAt, type Uuid } from '../domain/ids.ts';
import type { QueueCleaner } from '../ports/delivery-queue.ts';
import type { MemoryStore } from './memory-store.ts';
import type { QueueRow } from './rows.ts';

export function createMemoryQueueCleaner(store: MemoryStore): QueueCleaner {
  return {
    async skip(endpointId, reason, except) {
      const endpoint = store.endpoints.get(endpointId)?.endpoint;
      if (endpoint === undefined || (endpoint.enabled && !endpoint.deleted)) return 0;
      const rows = selectChunk(store, endpointId, except, () => true);
      for (const row of rows) skip(store, row, reason);
      return rows.length;
    },
    async expire(endpointId, agedBefore, except, { blocksLane }) {
      const firstKeptId = firstIdAt(agedBefore);
      const rows = selectChunk(
        store,
        endpointId,
        except,
        ({ id, agesFrom }) => id < firstKeptId && (agesFrom === null || agesFrom < agedBefore),
      );
      for (const row of rows) expire(store, row, blocksLane);
      return rows.length;
    },
    async moveToFifo(endpointId) {
      const rows = selectChunk(store, endpointId, [], ({ dueAt, fifo }) => dueAt !== null && !fifo);
      for (const row of rows) row.fifo = true;
      return rows.length;
    },
  };
}

function selectChunk(
  store: MemoryStore,
  endpointId: Uuid,
  except: readonly Uuid[],
  applies: (row: QueueRow) => boolean,
): QueueRow[] {
  const excepted = new Set(except);
  return store.queue
    .of(endpointId)
    .filter((row) => !excepted.has(row.id) && applies(row))
    .slice(0, store.chunkSize);
}

/** If the delivery is the replay of a dead letter, the dead letter stays. */
function skip(store: MemoryStore, row: QueueRow, reason: string): void {
  store.queue.delete(row);
  const letter = store.deadLetters.get(row.id);
  if (letter !== undefined) {
    letter.replaying = false;
    letter.attempts = row.attempts;
    return;
  }
  store.finished.set(row.id, { ...factsOf(row), status: 'skipped', reason, finishedAt: store.now() });
}

function expire(store: MemoryStore, row: QueueRow, blocksLane: boolean): void {
  store.queue.delete(row);
  const letter = store.deadLetters.get(row.id);
  const { lastStatusCode, lastErrorClass } = letter ?? row;
  store.deadLetters.set(row.id, {
    ...factsOf(row),
    lastStatusCode,
    lastErrorClass,
    reason: 'expired',
    blocksLane,
    replaying: false,
    deadAt: store.now(),
  });
}

const factsOf = ({
  id,
  endpointId,
  tenant,
  eventType,
  attempts,
  replays,
  lastStatusCode,
  lastErrorClass,
}: QueueRow) => ({ id, endpointId, tenant, eventType, attempts, replays, lastStatusCode, lastErrorClass });
