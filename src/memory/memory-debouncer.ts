import { timeOfId, type Uuid } from '../domain/ids.ts';
import {
  DEBOUNCE_PAUSE_MS,
  type DebounceDecision,
  type DebounceRequest,
  type Debouncer,
  FIRST_PAUSE_MS,
  SEND_AS_IT_IS,
} from '../ports/debouncer.ts';
import { bySeq } from './memory-lane-reader.ts';
import type { MemoryStore } from './memory-store.ts';
import type { QueueRow } from './rows.ts';

export function createMemoryDebouncer(store: MemoryStore): Debouncer {
  return {
    async decideDebounce(request) {
      const { deliveryId, endpointId, settings } = request;
      const own = store.debounceKeys.get(deliveryId);
      const row = store.queue.get(deliveryId);
      if (row === undefined) return { ...SEND_AS_IT_IS, kind: 'gone' };
      if (own === undefined || own.endpointId !== endpointId || row.replays > 0) return SEND_AS_IT_IS;
      if (settings.mode === 'first') return decideFirst(store, request, own.key);
      return own.isChosen ? sendChosen(store, request, own.key) : decideLast(store, request, own.key);
    },
  };
}

/** The waiting deliveries of a key that were accepted before `end`. Replays are never debounced. */
function groupOf(
  store: MemoryStore,
  endpointId: Uuid,
  key: string,
  end = Number.POSITIVE_INFINITY,
): QueueRow[] {
  return store.queue
    .of(endpointId)
    .filter(
      ({ id, replays }) => replays === 0 && store.debounceKeys.get(id)?.key === key && timeOfId(id) < end,
    )
    .sort(bySeq);
}

function decideLast(store: MemoryStore, request: DebounceRequest, key: string): DebounceDecision {
  const { deliveryId, endpointId, settings, now, underWay } = request;
  const group = groupOf(store, endpointId, key);
  const newest = group.at(-1)!;
  if (group.some(({ id }) => underWay.includes(id))) return waitUntil(now + DEBOUNCE_PAUSE_MS);
  const since = Math.min(...group.map(({ id }) => store.debounceKeys.get(id)!.since));
  const sendAt = Math.min(timeOfId(newest.id) + settings.windowMs, since + settings.maxWaitMs);
  const skipped = supersede(store, group, newest.id, newest.id, underWay);
  if (deliveryId !== newest.id) {
    if (now >= sendAt) {
      store.debounceKeys.get(newest.id)!.isChosen = true;
      newest.dueAt = Math.min(newest.dueAt ?? 0, Math.floor(store.now()));
    }
    return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
  }
  return now >= sendAt ? sendNow(store, deliveryId, skipped) : { ...waitUntil(sendAt), skipped };
}

/** `max_wait_ms` was over when this was the newest one: it is sent, whatever has come since. */
function sendChosen(store: MemoryStore, request: DebounceRequest, key: string): DebounceDecision {
  const { deliveryId, endpointId, underWay } = request;
  const older = groupOf(store, endpointId, key).filter(({ id }) => id < deliveryId);
  return sendNow(store, deliveryId, supersede(store, older, deliveryId, deliveryId, underWay));
}

function decideFirst(store: MemoryStore, request: DebounceRequest, key: string): DebounceDecision {
  const { deliveryId, endpointId, settings, underWay } = request;
  const name = `${endpointId} ${key}`;
  const acceptedAt = timeOfId(deliveryId);
  let window = store.debounceWindows.get(name);
  if (window === undefined || window.until <= acceptedAt) {
    window = { firstId: deliveryId, until: acceptedAt + settings.windowMs };
    store.debounceWindows.set(name, window);
  }
  const { firstId, until } = window;
  if (firstId === deliveryId) return sendNow(store, deliveryId, []);
  const group = groupOf(store, endpointId, key, until);
  if (store.finished.get(firstId)?.status === 'delivered' || group.length === 0)
    return { ...SEND_AS_IT_IS, kind: 'gone', skipped: supersede(store, group, firstId, null, underWay) };
  const first = store.queue.get(firstId);
  if (first !== undefined) {
    const newest = group.findLast(({ id }) => id !== firstId && !underWay.includes(id))?.id ?? null;
    const skipped = supersede(store, group, firstId, newest, underWay);
    if (deliveryId === newest)
      store.queue.get(deliveryId)!.dueAt =
        Math.floor(Math.max(store.now(), first.dueAt ?? 0)) + FIRST_PAUSE_MS;
    return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
  }
  const newest = group.at(-1)!;
  window.firstId = newest.id;
  for (const [id, by] of store.debounced) if (by === firstId) store.debounced.set(id, newest.id);
  const skipped = supersede(store, group, newest.id, newest.id, underWay);
  if (deliveryId === newest.id) return sendNow(store, deliveryId, skipped);
  return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
}

function supersede(
  store: MemoryStore,
  group: readonly QueueRow[],
  by: Uuid,
  kept: Uuid | null,
  underWay: readonly Uuid[],
): Uuid[] {
  const doomed = group.filter(
    ({ id }) => id !== by && id !== kept && !underWay.includes(id) && !store.debounceKeys.get(id)!.isChosen,
  );
  const target = store.debounceKeys.get(by);
  for (const row of doomed) {
    store.queue.delete(row);
    const { id, endpointId, tenant, eventType, attempts, replays, lastStatusCode, lastErrorClass } = row;
    const facts = { id, endpointId, tenant, eventType, attempts, replays, lastStatusCode, lastErrorClass };
    store.finished.set(id, { ...facts, status: 'skipped', reason: 'debounced', finishedAt: store.now() });
    for (const [other, link] of store.debounced) if (link === id) store.debounced.set(other, by);
    store.debounced.set(id, by);
    const own = store.debounceKeys.get(id)!;
    store.debounceKeys.delete(id);
    if (target === undefined) continue;
    target.debounced += own.debounced + 1;
    target.since = Math.min(target.since, own.since);
  }
  return doomed.map(({ id }) => id);
}

const sendNow = (store: MemoryStore, id: Uuid, skipped: readonly Uuid[]): DebounceDecision => ({
  ...SEND_AS_IT_IS,
  debounced: store.debounceKeys.get(id)?.debounced ?? 0,
  skipped,
});

const waitUntil = (until: number): DebounceDecision => ({ ...SEND_AS_IT_IS, kind: 'wait', until });
