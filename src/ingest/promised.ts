/**
 * Events that somebody's transaction has committed already: rows of the outbox, and what a relay brings. They are
 * accepted like any other, but there is nobody left to say no to:
 *
 *   stored                     the usual case
 *   stored before, or gone     the same id again: nothing new
 *   the key is another's,      stored with no deliveries and `duplicate_of`: the id that the caller was told can be
 *     same type and data         looked up, and says why nothing was sent
 *   the key is another's,      stored and delivered as an event of its own, without the key, and says so: reusing a
 *     something else             key is a mistake, but losing what was committed would be a worse one
 *   the database refuses it    refused, for whoever brought it to put aside
 */
import { timeOfId, type Uuid } from '../domain/ids.ts';
import { invalidField, type Problem } from '../domain/problem.ts';

/** Whose key it turned out to be. */
export interface LostKey {
  readonly key: string;
  readonly eventId: Uuid;
  readonly sameContent: boolean;
}

const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{8}0000$/;
const EARLIEST_MS = Date.UTC(2020, 0);
/** Another machine's clock may be ahead, but not so far that there is no partition for its ids yet. */
const AHEAD_MS = 3_600_000;
/** From here on an event has waited so long that its age counts from now: it must not be too old when it arrives. */
const WAITED_MS = 60_000;

/** By a clock that may have jumped: to be asked again by the database's before it is held against anybody. */
export function seemsAhead(id: Uuid, now: number): boolean {
  return timeOfId(id) > now + AHEAD_MS;
}

/** What is wrong with an id that was made elsewhere; null if it can be an event's. */
export function problemOfId(id: Uuid, now: number): Problem | null {
  if (!EVENT_ID.test(id))
    return invalidField('id', 'must be an event id: a UUID of version 7 whose last 16 bits are zero');
  const time = timeOfId(id);
  if (time < EARLIEST_MS || seemsAhead(id, now))
    return invalidField('id', `says it was made at ${new Date(time).toISOString()}, which cannot be`);
  return null;
}

export function hasWaited(id: Uuid, now: number): boolean {
  return now - timeOfId(id) > WAITED_MS;
}

/** What events keep of it. Ids as everywhere in `options`: as the database has them. */
export function lostKeyOptions({ key, eventId, sameContent }: LostKey): Record<string, unknown> {
  return { lost_key: key, [sameContent ? 'duplicate_of' : 'key_conflict_with']: eventId };
}
