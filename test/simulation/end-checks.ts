/** Checks at the end of a run, when all work is done: nothing is lost, nothing is left over, everything is recorded. */
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import type { StoredEvent } from '../../src/memory/rows.ts';
import type { World } from './world.ts';

/** Returns a sentence per violation. */
export function findEndViolations(world: World): string[] {
  return [
    ...checkAnswers(world),
    ...checkOutbox(world),
    ...[...world.store.events.values()].flatMap((event) => checkEvent(world, event)),
    ...checkMemory(world),
  ];
}

/** Each endpoint that an event names has a delivery: delivered, dead, or skipped because the endpoint was disabled. */
function checkEvent(world: World, { id, deliveries, options }: StoredEvent): string[] {
  const skipped = (options?.skipped as number | undefined) ?? 0;
  const named = (options?.endpoint_ids as readonly Uuid[] | undefined)?.length;
  const isDuplicate = options?.duplicate_of !== undefined;
  const all = Array.from({ length: deliveries + skipped }, (_, ordinal) => deliveryIdOf(id, ordinal));
  return [
    ...all.flatMap((delivery) => checkDelivery(world, delivery)),
    ...(named !== undefined && !isDuplicate && named !== all.length
      ? [`event ${id} names ${named} endpoints and has ${all.length} deliveries`]
      : []),
    ...all.slice(deliveries).flatMap((delivery) => {
      const end = world.store.finished.get(delivery);
      const isReplayed = (end?.replays ?? 1) > 0;
      return end?.status === 'skipped' || isReplayed || world.store.deadLetters.has(delivery)
        ? []
        : [`delivery ${delivery} was accepted as skipped and is ${end?.status ?? 'gone'}`];
    }),
  ];
}

/** A 202 is never lost, and a key belongs to one event. */
function checkAnswers({ store, publications, kafka }: World): string[] {
  const problems: string[] = [];
  const eventOfKey = new Map<string, Uuid>();
  const wasAnyDisabled = [...store.finished.values()].some(({ reason }) => reason === 'endpoint_disabled');
  for (const { idempotencyKey, id } of store.events.values()) {
    if (idempotencyKey === null) continue;
    if (eventOfKey.has(idempotencyKey)) problems.push(`two events were stored for the key ${idempotencyKey}`);
    eventOfKey.set(idempotencyKey, id);
  }
  for (const { accepted, event } of publications) {
    if (accepted === null) continue;
    const stored = store.events.get(accepted.id);
    if (stored === undefined) problems.push(`event ${accepted.id} was accepted and is not stored`);
    // The answer to a repeated write counts the endpoints that matched at that time. One may have been disabled since
    // the first write. With an accept log, it is what the accepting process knew.
    else if (stored.deliveries !== accepted.deliveries && !wasAnyDisabled && kafka === null)
      problems.push(
        `event ${accepted.id} was accepted with ${accepted.deliveries} deliveries, not ${stored.deliveries}`,
      );
    if (event.idempotencyKey !== null && eventOfKey.get(event.idempotencyKey) !== accepted.id)
      problems.push(`key ${event.idempotencyKey} was answered with an event that does not hold it`);
  }
  return problems;
}

/** A row of the outbox becomes an event exactly once. */
function checkOutbox({ store, outboxIds }: World): string[] {
  const left = [...store.outbox.values()].map(({ id }) => `row ${id} is left in the outbox`);
  const lost = [...outboxIds].filter((id) => !store.events.has(id));
  return [...left, ...lost.map((id) => `row ${id} of the outbox did not become an event`)];
}

function checkDelivery(world: World, id: Uuid): string[] {
  const { store, time } = world;
  const name = `delivery …${id.slice(-13)}`;
  const waiting = store.queue.get(id);
  if (waiting !== undefined) {
    const seconds = ((time.now() - waiting.visibleAt) / 1000).toFixed(0);
    const owner = store.ownerOf(waiting.endpointId);
    return [
      `${name} of endpoint …${waiting.endpointId.slice(-6)} still waits after ${seconds} s (attempts ${waiting.attempts}, due ${waiting.dueAt}, owner ${owner})`,
    ];
  }
  const dead = store.deadLetters.get(id);
  const finished = store.finished.get(id);
  if (dead === undefined && finished === undefined) return [`${name} is lost`];
  if (dead !== undefined && finished !== undefined) return [`${name} ended twice`];
  const problems: string[] = [];
  if (finished?.status === 'delivered' && !world.delivered.has(id))
    problems.push(`${name} is recorded as delivered, but was not`);
  if (finished?.reason === 'debounced') problems.push(...checkDebounced(world, id, name));
  const replayedAt = world.replayed.get(id) ?? 0;
  // A replay that waits when its endpoint is disabled is dropped, and the delivery is a dead letter again.
  const wasDisabled = (world.disabled.get((dead ?? finished)!.endpointId) ?? 0) >= replayedAt;
  if (dead !== undefined && !wasDisabled && (world.lastStart.get(id) ?? 0) < replayedAt)
    problems.push(`${name} was replayed, and not sent again`);
  const recorded = countAttempts(store, id);
  const { attempts } = (dead ?? finished)!;
  if (recorded !== attempts) problems.push(`${name} made ${attempts} attempts, and ${recorded} are recorded`);
  return problems;
}

/** A delivery that was debounced points to one that was sent. It was not on the wire when it was skipped. */
function checkDebounced({ store, lastStart, checks }: World, id: Uuid, name: string): string[] {
  const { attempts } = store.finished.get(id)!;
  if (checks.wasOnWire(id, attempts, store.debouncedAt.get(id)!))
    return [`${name} was on the wire when it was debounced`];
  const by = store.debounced.get(id);
  if (by === undefined) return [`${name} was debounced by nothing`];
  const end = store.finished.get(by)?.status;
  const wasDropped = end === 'skipped' && store.finished.get(by)?.reason !== 'debounced';
  const wasSent = lastStart.has(by) || store.deadLetters.has(by) || wasDropped;
  return wasSent ? [] : [`${name} was debounced by …${by.slice(-13)}, which was not sent`];
}

const countAttempts = (store: MemoryStore, id: Uuid): number =>
  [...(store.attempts.get(id)?.values() ?? [])].filter(({ outcome }) => outcome !== 'superseded').length;

/** An idle process holds nothing in memory. */
function checkMemory({ running }: World): string[] {
  return running.flatMap(({ process, engine }) => {
    const { inMemory, inFlight, unsettled, heldBytes } = engine.stats;
    return inMemory + inFlight + unsettled + heldBytes === 0
      ? []
      : [`${process.name} still holds ${JSON.stringify(engine.stats)}`];
  });
}
