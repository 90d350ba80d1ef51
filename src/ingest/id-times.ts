/** Checks ids that producers and databases have made: which of them an event can have. */
import type { CommittedEvent } from '../domain/event.ts';
import { isEventId, timeOfId, type Uuid } from '../domain/ids.ts';
import { invalidField, type Problem } from '../domain/problem.ts';

const EARLIEST_MS = Date.UTC(2020, 0);
/** The producer's clock may be this far ahead: partitions for such ids always exist. */
const MAX_AHEAD_MS = 3_600_000;
/**
 * `posthorn.publish` returns an id with the time of the database's clock, and so does a 202 for an event in the accept log. If that clock
 * was ahead, the producer has an id from the future, and the event keeps it. Partitions are created for times up to this far ahead.
 */
const MAX_OWN_AHEAD_MS = 100 * 86_400_000;

export const isFromFuture = (id: Uuid, now: number): boolean => timeOfId(id) > now + MAX_AHEAD_MS;

/** True if no partition is created for the id of this committed event, because it is too far ahead. */
export const isTooFarAhead = (
  id: Uuid,
  {
    outboxSeq,
    record,
    isFromAcceptLog = false,
  }: Pick<CommittedEvent, 'outboxSeq' | 'record' | 'isFromAcceptLog'>,
  now: number,
): boolean => {
  const isOutboxRow = outboxSeq !== null && record === undefined;
  return timeOfId(id) > now + (isOutboxRow || isFromAcceptLog ? MAX_OWN_AHEAD_MS : MAX_AHEAD_MS);
};

/** Returns what is wrong with an id that was made outside of this process. Null: an event can have it. */
export function findIdProblem(
  event: Pick<CommittedEvent, 'id' | 'outboxSeq' | 'record' | 'isFromAcceptLog'>,
  now: number,
): Problem | null {
  const { id } = event;
  if (!isEventId(id))
    return invalidField(
      'id',
      'must be an event id: a UUID of version 7 whose last 16 bits are zero, or of version 8 whose last 20 bits are zero',
    );
  const time = timeOfId(id);
  return time < EARLIEST_MS || isTooFarAhead(id, event, now) ? impossibleTime(id) : null;
}

export const impossibleTime = (id: Uuid): Problem =>
  invalidField(
    'id',
    `has the time ${new Date(timeOfId(id)).toISOString()}, which is before 2020 or too far ahead`,
  );
