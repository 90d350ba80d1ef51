import { CLOSED_BREAKER } from '../domain/breaker.ts';
import { readConversionNote } from '../domain/conversion-header.ts';
import type { Uuid } from '../domain/ids.ts';
import type { SettleBatch, Settlement, SettlementSink } from '../ports/delivery-queue.ts';
import { type MemoryStore, toMicroseconds } from './memory-store.ts';
import type { QueueRow, StoredAttempt } from './rows.ts';
import { checkBreaker, checkSettlement, toStorableText } from './stored-values.ts';

export function createMemorySettlementSink(store: MemoryStore): SettlementSink {
  return {
    async settle(batch) {
      for (const settlement of batch.settlements) checkSettlement(settlement);
      for (const { endpointId, breaker } of batch.health)
        if (breaker !== null && store.ownerOf(endpointId) === batch.worker.id) checkBreaker(breaker);
      const moved = new Set<Uuid>();
      for (const settlement of batch.settlements) {
        const { deliveryId } = settlement;
        if (moved.has(deliveryId)) continue;
        const isMoved = applySettlement(store, settlement);
        if (isMoved) moved.add(deliveryId);
        logAttempt(store, settlement, batch.worker.name, isMoved ? settlement.verdict.kind : 'superseded');
      }
      writeHealth(store, batch);
      return moved;
    },
  };
}

/** Returns false if another worker has settled the delivery, or if a replay makes this result outdated. */
function applySettlement(store: MemoryStore, settlement: Settlement): boolean {
  const row = store.queue.get(settlement.deliveryId);
  if (row === undefined || row.attempts !== settlement.attemptsBefore) return false;
  if (isOutdatedByReplay(row, settlement)) return false;
  const { verdict, attempt } = settlement;
  const statusCode = attempt?.outcome.statusCode ?? null;
  const errorClass = attempt?.outcome.error?.class ?? null;
  if (verdict.kind === 'retry') {
    // A start well after this attempt belongs to the next owner, whose request is still on the wire. If that is a requested
    // probe, it stays one: otherwise yet another owner would start a second probe beside it. If the start is more than a day after this attempt, the clock
    // was wrong when the start was recorded.
    const afterMs = (row.startedAt ?? 0) - attempt!.outcome.startedAt;
    const isOfNextOwner = row.startedAt !== null && afterMs > 2_000 && afterMs < 86_400_000;
    if (isOfNextOwner && row.probeAfterAttempts === row.attempts) row.probeAfterAttempts += 1;
    if (!isOfNextOwner) row.startedAt = null;
    row.attempts += 1;
    row.dueAt = toMicroseconds(verdict.dueAt);
    row.carefulStarts = 0;
    row.fifo ||= settlement.fifo;
    row.lastStatusCode = statusCode;
    row.lastErrorClass = errorClass;
    row.trigger = 'auto';
    row.batchId = settlement.batchId ?? null;
    if (verdict.isUncounted) row.attemptsBeforeReplay += 1;
    return true;
  }
  store.queue.delete(row);
  const { id, endpointId, tenant, eventType, replays } = row;
  const attempts = row.attempts + (attempt === null ? 0 : 1);
  const facts = { id, endpointId, tenant, eventType, attempts, replays };
  if (verdict.kind === 'delivered') {
    store.deadLetters.delete(id);
    store.finished.set(id, {
      ...facts,
      status: 'delivered',
      reason: null,
      lastStatusCode: statusCode,
      lastErrorClass: null,
      finishedAt: attempt === null ? store.now() : attempt.outcome.startedAt + attempt.outcome.durationMs,
    });
    return true;
  }
  const earlier = store.deadLetters.get(id);
  store.deadLetters.set(id, {
    ...facts,
    reason: verdict.reason,
    blocksLane: settlement.blocksLane,
    replaying: false,
    lastStatusCode: statusCode ?? earlier?.lastStatusCode ?? null,
    lastErrorClass: errorClass ?? earlier?.lastErrorClass ?? null,
    deadAt: store.now(),
  });
  return true;
}

/**
 * A replay makes two kinds of results outdated: the failure of a request that was on the wire when the replay was
 * requested, and an end without an attempt that was decided by the age before the replay.
 */
function isOutdatedByReplay(row: QueueRow, { attempt, verdict, agesFrom }: Settlement): boolean {
  if (attempt === null) return row.agesFrom !== null && row.agesFrom >= agesFrom + 1;
  return row.trigger === 'replay' && attempt.trigger !== 'replay' && verdict.kind !== 'delivered';
}

function logAttempt(
  store: MemoryStore,
  { deliveryId, attemptsBefore, attempt }: Settlement,
  worker: string,
  outcome: StoredAttempt['outcome'],
): void {
  if (attempt === null) return;
  const { startedAt, statusCode, error, requestHeaders, responseHeaders, responseBody } = attempt.outcome;
  const isSuperseded = outcome === 'superseded';
  store.addAttempt({
    deliveryId,
    id: attempt.id,
    number: attemptsBefore + 1,
    outcome,
    startedAt: toMicroseconds(startedAt),
    statusCode,
    errorClass: error?.class ?? null,
    errorMessage: error === null || isSuperseded ? null : toStorableText(error.message),
    responseHeaders:
      responseHeaders === null || isSuperseded ? null : toStorableText(JSON.stringify(responseHeaders)),
    responseBody: isSuperseded ? null : responseBody,
    trigger: attempt.trigger,
    worker,
    conversion: readConversionNote(requestHeaders),
  });
}

/** Only the owner of an endpoint's lane may write its health. */
function writeHealth(store: MemoryStore, { health, endpointNotes, worker }: SettleBatch): void {
  const isOwner = (endpointId: Uuid): boolean => store.ownerOf(endpointId) === worker.id;
  for (const { endpointId, breaker, failingSince, holdUntil, latestHold, adaptive = null } of health) {
    if (!isOwner(endpointId)) continue;
    const stored = store.health.get(endpointId);
    const isStoredWrong = latestHold !== undefined && (stored?.holdUntil ?? 0) > latestHold;
    const latest = Math.max(isStoredWrong ? 0 : (stored?.holdUntil ?? 0), holdUntil ?? 0) || null;
    if (breaker !== null)
      store.health.set(endpointId, { breaker, failingSince, holdUntil: latest, adaptive });
    else if (stored !== undefined) stored.holdUntil = latest;
    else
      store.health.set(endpointId, {
        breaker: CLOSED_BREAKER,
        failingSince: null,
        holdUntil: latest,
        adaptive: null,
      });
  }
  for (const note of endpointNotes)
    if (isOwner(note.endpointId) && !store.endpointNotes.has(note.id)) store.endpointNotes.set(note.id, note);
}
