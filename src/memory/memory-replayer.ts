import type { Uuid } from '../domain/ids.ts';
import type { Replayer } from '../ports/delivery-queue.ts';
import type { MemoryStore } from './memory-store.ts';
import type { DeliveryFacts, QueueRow } from './rows.ts';

export function createMemoryReplayer(store: MemoryStore): Replayer {
  return {
    async replay(deliveries, now = 0) {
      const moved = new Set<Uuid>();
      for (const { id, endpointId } of deliveries.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
        if (replayDelivery(store, id, endpointId, now)) moved.add(id);
      return moved;
    },
  };
}

/** Returns false if the endpoint is disabled or deleted, or there is no such delivery. */
export function replayDelivery(store: MemoryStore, id: Uuid, endpointId: Uuid, notBefore = 0): boolean {
  const endpoint = store.endpoints.get(endpointId)?.endpoint;
  if (endpoint === undefined || !endpoint.enabled || endpoint.deleted) return false;
  const now = Math.floor(Math.max(store.now(), notBefore));
  const isFifo = endpoint.ordering === 'fifo';

  const waiting = store.queue.get(id);
  if (waiting !== undefined) {
    restart(waiting, now);
    return true;
  }
  const letter = store.deadLetters.get(id);
  if (letter !== undefined && !letter.replaying) {
    letter.replaying = true;
    letter.replays += 1;
    enqueue(store, letter, letter.replays, isFifo, now);
    return true;
  }
  const finished = store.finished.get(id);
  if (finished === undefined) return false;
  store.finished.delete(id);
  enqueue(store, finished, finished.replays + 1, isFifo, now);
  return true;
}

/**
 * Makes a waiting delivery due now, in its place in the order of acceptance. If it is due already and was not attempted
 * since its schedule began, this replay makes no request of its own and does not count.
 */
function restart(row: QueueRow, now: number): void {
  const sendsAgain = row.attempts > row.attemptsBeforeReplay || (row.dueAt ?? 0) > now;
  row.agesFrom = now;
  row.attemptsBeforeReplay = row.attempts;
  if (!sendsAgain) return;
  row.replays += 1;
  row.dueAt = now;
  row.trigger = 'replay';
  row.batchId = null;
}

/** Queues an ended delivery again, at the end of the order of acceptance. */
function enqueue(store: MemoryStore, from: DeliveryFacts, replays: number, fifo: boolean, now: number): void {
  store.queue.add({
    id: from.id,
    endpointId: from.endpointId,
    tenant: from.tenant,
    eventType: from.eventType,
    seq: store.nextSeq(),
    visibleAt: store.visibleNow(),
    fifo,
    dueAt: now,
    agesFrom: now,
    startedAt: null,
    attempts: from.attempts,
    attemptsBeforeReplay: from.attempts,
    replays,
    carefulStarts: 0,
    trigger: 'replay',
    lastStatusCode: from.lastStatusCode,
    lastErrorClass: from.lastErrorClass,
  });
}
