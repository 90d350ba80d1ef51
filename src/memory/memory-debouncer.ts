import { timeOfId, type Uuid } from '../domain/ids.ts';
import {
  acceptedAt,
  DEBOUNCE_PAUSE_MS,
  type DebounceDecision,
  type DebounceRequest,
  type Debouncer,
  DROP,
  FIRST_PAUSE_MS,
  latestWindowEnd,
  MAX_GROUP,
  onWireSince,
  SEND_AS_IT_IS,
  waitUntil,
} from '../ports/debouncer.ts';
import { bySeq } from './memory-lane-reader.ts';
import type { MemoryStore } from './memory-store.ts';
import type { QueueRow } from './rows.ts';

export function createMemoryDebouncer(store: MemoryStore): Debouncer {
  return {
    async decideDebounce(request) {
      const round = new Round(store, request);
      for (const asked of request.asked) round.decide(asked);
      return { decisions: round.decisions, skipped: round.skipped };
    },
  };
}

class Round {
  readonly decisions = new Map<Uuid, DebounceDecision>();
  readonly skipped: Uuid[] = [];
  readonly #store: MemoryStore;
  readonly #request: DebounceRequest;
  readonly #sent = new Set<Uuid>();

  constructor(store: MemoryStore, request: DebounceRequest) {
    this.#store = store;
    this.#request = request;
  }

  decide({ id, attempts }: DebounceRequest['asked'][number]): void {
    const { endpointId, settings } = this.#request;
    if (this.decisions.has(id)) return;
    const own = this.#store.debounceKeys.get(id);
    const row = this.#store.queue.get(id);
    if (row === undefined || row.attempts !== attempts) this.decisions.set(id, DROP);
    else if (own === undefined || own.endpointId !== endpointId || row.replays > 0)
      this.decisions.set(id, SEND_AS_IT_IS);
    else if (settings.mode === 'first') this.decisions.set(id, this.#decideFirst(id, own.key));
    else this.#decideLast(own.key);
  }

  /** Decides about all deliveries of the key that are in `asked`. */
  #decideLast(key: string): void {
    const { settings, now } = this.#request;
    const group = this.#groupOf(key);
    const asked = group.filter(({ id }) => this.#isAsked(id));
    const decideAll = (decision: DebounceDecision): void => {
      for (const { id } of asked) this.decisions.set(id, decision);
    };
    if (group.some((row) => this.#isOnWire(row))) return decideAll(waitUntil(now + DEBOUNCE_PAUSE_MS));
    const chosen = group.find((row) => this.#isChosen(row));
    const newest = group.at(-1)!;
    // The delivery that is sent, now or later.
    const by = chosen ?? newest;
    const since = Math.min(now, ...group.map(({ id }) => this.#store.debounceKeys.get(id)!.since));
    const sendAt = Math.min(acceptedAt(newest.id, now) + settings.windowMs, since + settings.maxWaitMs);
    const isDue = chosen !== undefined || now >= sendAt;
    if (isDue || group.length > MAX_GROUP) {
      const older = group.filter(({ seq }) => seq < by.seq);
      // This delivery stays, so that it asks for a decision again when the group must be sent. Null: `by` asks.
      const watch = isDue || this.#isAsked(by.id) ? null : asked[0]!.id;
      this.#supersede(isDue ? older : older.toReversed(), by.id, watch);
      // Newer ones wait until the chosen one is sent, older ones until a later call ends them.
      for (const { id } of asked) this.decisions.set(id, this.#endOrWait(id));
      if (watch !== null) this.decisions.set(watch, waitUntil(since + settings.maxWaitMs));
    } else decideAll(waitUntil(since + settings.maxWaitMs));
    const isUnfinished = this.skipped.length >= this.#request.maxEnded;
    if (this.#isAsked(by.id) && isDue && !isUnfinished) {
      this.decisions.set(by.id, this.#send(by.id));
      return;
    }
    if (this.#isAsked(by.id)) this.decisions.set(by.id, waitUntil(isDue ? now : sendAt));
    if (!isDue) return;
    this.#store.debounceKeys.get(by.id)!.isChosen = true;
    // If it was chosen while the clock was ahead, it is due in the future, and the others of its key wait for it.
    if (by.dueAt !== null) by.dueAt = Math.min(by.dueAt, Math.floor(now));
  }

  #decideFirst(deliveryId: Uuid, key: string): DebounceDecision {
    const store = this.#store;
    const { endpointId, settings, now } = this.#request;
    const name = `${endpointId} ${key}`;
    const at = acceptedAt(deliveryId, now) || now;
    let window = store.debounceWindows.get(name);
    const isOver = window === undefined || window.until <= at;
    if (window === undefined || isOver || window.until > latestWindowEnd(settings.windowMs, now)) {
      window = { firstId: deliveryId, until: at + settings.windowMs };
      store.debounceWindows.set(name, window);
    }
    const { firstId, until } = window;
    if (firstId === deliveryId) return this.#send(deliveryId);
    const group = this.#groupOf(key, until);
    if (store.finished.get(firstId)?.status === 'delivered') {
      this.#supersede(group, firstId, null);
      return this.#endOrWait(deliveryId);
    }
    const first = store.queue.get(firstId);
    if (first !== undefined) {
      const newest = group.findLast((row) => row.id !== firstId && !this.#isOnWire(row))?.id ?? null;
      this.#supersede(group, firstId, newest);
      if (deliveryId !== newest) return this.#endOrWait(deliveryId);
      store.queue.get(deliveryId)!.dueAt = Math.floor(Math.max(now, first.dueAt ?? 0)) + FIRST_PAUSE_MS;
      return DROP;
    }
    const newest = group.at(-1)!;
    window.firstId = newest.id;
    for (const [id, by] of store.debounced) if (by === firstId) store.debounced.set(id, newest.id);
    this.#supersede(group, newest.id, newest.id);
    return deliveryId === newest.id ? this.#send(deliveryId) : this.#endOrWait(deliveryId);
  }

  /** If this call has ended `maxEnded` deliveries without this one, a later call ends it. */
  #endOrWait(id: Uuid): DebounceDecision {
    return this.skipped.includes(id) ? DROP : waitUntil(this.#request.now + DEBOUNCE_PAUSE_MS);
  }

  /** The waiting deliveries of a key that were accepted before `end`. Replays are never debounced. */
  #groupOf(key: string, end = Number.POSITIVE_INFINITY): QueueRow[] {
    const { queue, debounceKeys } = this.#store;
    return queue
      .of(this.#request.endpointId)
      .filter(({ id, replays }) => replays === 0 && debounceKeys.get(id)?.key === key && timeOfId(id) < end)
      .sort(bySeq);
  }

  #isAsked(id: Uuid): boolean {
    return this.#request.asked.some((asked) => asked.id === id);
  }

  #isOnWire({ id, startedAt }: QueueRow): boolean {
    if (this.#request.underWay.includes(id) || this.#sent.has(id)) return true;
    if (this.#isAsked(id) || startedAt === null) return false;
    const since = onWireSince(this.#request);
    // A start in the future was recorded while the clock was wrong.
    return startedAt > since && (since === 0 || startedAt < since + 86_400_000);
  }

  /** A chosen delivery that waits for a retry can be superseded like any other. */
  #isChosen({ id, attempts }: QueueRow): boolean {
    return attempts === 0 && this.#store.debounceKeys.get(id)!.isChosen;
  }

  #supersede(group: readonly QueueRow[], by: Uuid, kept: Uuid | null): void {
    const store = this.#store;
    const target = store.debounceKeys.get(by);
    for (const row of group) {
      const { id, endpointId, tenant, eventType, attempts, replays, lastStatusCode, lastErrorClass } = row;
      if (id === by || id === kept || this.#isOnWire(row) || this.#isChosen(row)) continue;
      if (this.skipped.length >= this.#request.maxEnded) return;
      store.queue.delete(row);
      const facts = { id, endpointId, tenant, eventType, attempts, replays, lastStatusCode, lastErrorClass };
      store.finished.set(id, { ...facts, status: 'skipped', reason: 'debounced', finishedAt: store.now() });
      for (const [other, link] of store.debounced) if (link === id) store.debounced.set(other, by);
      store.debounced.set(id, by);
      store.debouncedAt.set(id, store.visibleNow());
      const own = store.debounceKeys.get(id)!;
      store.debounceKeys.delete(id);
      this.skipped.push(id);
      if (target === undefined) continue;
      target.debounced += own.debounced + 1;
      target.since = Math.min(target.since, own.since);
    }
  }

  #send(id: Uuid): DebounceDecision {
    this.#sent.add(id);
    this.#store.queue.get(id)!.startedAt = Math.max(this.#store.now(), this.#request.now);
    return { ...SEND_AS_IT_IS, debounced: this.#store.debounceKeys.get(id)?.debounced ?? 0 };
  }
}
