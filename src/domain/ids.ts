/**
 * Ids are time-sortable UUIDs (version 7 or 8): 16 bytes in PostgreSQL, shown to people as TypeIDs (`evt_…`).
 *
 *   tttttttt-tttt-Vccc-vrrr-rrrrrrrooooo
 *   t  48 bits  milliseconds since 1970
 *   V   4 bits  version: says how long the ordinal is
 *   c  12 bits  counter within the millisecond, with a random start: the ids of one process only grow, unless its clock
 *               goes back by seconds
 *   r  42 bits  random (v carries the UUID variant)
 *   o  20 bits  ordinal: 00000 for an event, 00000–fffff for its deliveries. In version 7 it has 16 bits (one random digit
 *               more), as all events had once. Events of the outbox and of relays still have version 7.
 *
 * A delivery's id is its event's id with the ordinal filled in. So the event of a delivery follows from the id, and all
 * deliveries of an event are one key range. See docs/adr/0016-ids-for-large-fan-outs.md.
 */
import { createHash, randomFillSync } from 'node:crypto';

export type Uuid = string;

export const idPrefixes = {
  event: 'evt',
  endpoint: 'ep',
  delivery: 'dlv',
  attempt: 'att',
  key: 'key',
  task: 'task',
  audit: 'aud',
  request: 'req',
  batch: 'bat',
  notifier: 'ntf',
} as const;
export type IdPrefix = (typeof idPrefixes)[keyof typeof idPrefixes];

const COUNTER_LIMIT = 0x1000;
/**
 * If the clock went back further than this, new ids follow it. Otherwise, after a jump into the future, every later id would have
 * a time that no partition covers.
 */
const MAX_AHEAD_MS = 5_000;

const pool = Buffer.allocUnsafeSlow(8192);
let poolOffset = pool.length;
let lastMs = 0;
let counter = 0;

function takeRandomHex(bytes: number): string {
  if (poolOffset + bytes > pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  const hex = pool.toString('hex', poolOffset, poolOffset + bytes);
  poolOffset += bytes;
  return hex;
}

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');

const VARIANTS = '89ab';

/** `tail`: the last four or five digits. */
function newUuid(now: number, version: '7' | '8', tail: string): Uuid {
  // The database's clock has fractions of a millisecond.
  const nowMs = Math.trunc(now);
  if (nowMs > lastMs || nowMs < lastMs - MAX_AHEAD_MS) {
    lastMs = nowMs;
    counter = Number.parseInt(takeRandomHex(2), 16) & 0x3ff;
  } else if (++counter >= COUNTER_LIMIT) {
    // More than about 3,000 ids in a millisecond, or the clock went back a little: borrow from the next millisecond.
    lastMs += 1;
    counter = 0;
  }
  const time = hex(lastMs, 12);
  const random = takeRandomHex(6);
  const variant = VARIANTS[Number.parseInt(random[0]!, 16) & 3];
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}${hex(counter, 3)}-${variant}${random.slice(1, 4)}-${random.slice(4, 16 - tail.length)}${tail}`;
}

/** Makes an event id. Its last 20 bits are zero: they are the ordinal of its deliveries. */
export function newEventId(nowMs: number): Uuid {
  return newUuid(nowMs, '8', '00000');
}

/** Makes an id for anything but an event: all its last bits are random. */
export function newId(nowMs: number): Uuid {
  return newUuid(nowMs, '7', takeRandomHex(2));
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const EVENT_ID =
  /^[0-9a-f]{8}-[0-9a-f]{4}-(7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{8}0000|8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{7}00000)$/;

/** True if the id has the form of an event id. */
export const isEventId = (id: Uuid): boolean => EVENT_ID.test(id);

/**
 * Derives an event id from an id of another system. The same input always gives the same event id, in every release: a
 * relay may read an item again after an upgrade. The time comes from the id if it is a UUID of version 7, otherwise from
 * `createdAtMs`.
 */
export function eventIdFromForeignId(id: Uuid, createdAtMs: number): Uuid {
  const hasTime = UUID_V7.test(id);
  if (hasTime && id.endsWith('0000')) return id;
  const time = hex(Math.trunc(hasTime ? timeOfId(id) : createdAtMs), 12);
  const digest = createHash('sha256').update(id).digest('hex');
  const variant = VARIANTS[Number.parseInt(digest[3]!, 16) & 3];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 15)}0000`;
}

export function isUuidV7(id: Uuid): boolean {
  return UUID_V7.test(id);
}

const isVersion8 = (id: Uuid): boolean => id[14] === '8';

/** How many deliveries an event with this id can have. */
export const maxDeliveriesOf = (eventId: Uuid): number => (isVersion8(eventId) ? 0x100000 : 0x10000);

export function deliveryIdOf(eventId: Uuid, ordinal: number): Uuid {
  return isVersion8(eventId)
    ? eventId.slice(0, 31) + hex(ordinal, 5)
    : eventId.slice(0, 32) + hex(ordinal, 4);
}

export function eventIdOfDelivery(deliveryId: Uuid): Uuid {
  return isVersion8(deliveryId) ? `${deliveryId.slice(0, 31)}00000` : `${deliveryId.slice(0, 32)}0000`;
}

/** The first and last id that a delivery of this event can have. */
export function deliveryRangeOfEvent(eventId: Uuid): [first: Uuid, last: Uuid] {
  return [deliveryIdOf(eventId, 0), deliveryIdOf(eventId, maxDeliveriesOf(eventId) - 1)];
}

export function timeOfId(id: Uuid): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The smallest id that can be made at this time: a bound for "since" and "until". */
export function firstIdAt(timeMs: number): Uuid {
  const time = hex(Math.floor(Math.max(0, Math.min(timeMs, 0xffffffffffff))), 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

// --- TypeID text form -------------------------------------------------------------------------------------

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const DECODE = new Map([...ALPHABET].map((character, value) => [character, value]));
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** Two characters per 10 bits, so that formatting an id takes 13 lookups. Posthorn formats several ids per event. */
const PAIRS = Array.from({ length: 1024 }, (_, value) => ALPHABET[value >> 5]! + ALPHABET[value & 31]!);

/**
 * `evt_` and 26 base32 characters (the TypeID specification): two zero bits and the 128 bits of the id, 10 at a time.
 */
export function publicId(prefix: IdPrefix, id: Uuid): string {
  const a = Number.parseInt(id.slice(0, 8), 16);
  const b = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16);
  const c = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16);
  const d = Number.parseInt(id.slice(28), 16);
  return (
    `${prefix}_` +
    PAIRS[a >>> 24] +
    PAIRS[(a >>> 14) & 1023] +
    PAIRS[(a >>> 4) & 1023] +
    PAIRS[((a << 6) & 1023) | (b >>> 26)] +
    PAIRS[(b >>> 16) & 1023] +
    PAIRS[(b >>> 6) & 1023] +
    PAIRS[((b << 4) & 1023) | (c >>> 28)] +
    PAIRS[(c >>> 18) & 1023] +
    PAIRS[(c >>> 8) & 1023] +
    PAIRS[((c << 2) & 1023) | (d >>> 30)] +
    PAIRS[(d >>> 20) & 1023] +
    PAIRS[(d >>> 10) & 1023] +
    PAIRS[d & 1023]
  );
}

/** A regular expression for the public ids with this prefix. */
export const idPattern = (prefix: IdPrefix): string => `^${prefix}_${SUFFIX.source.slice(1)}`;

/** Returns the UUID of a public id, or null if it is not a public id with this prefix. */
export function parsePublicId(prefix: IdPrefix, text: string): Uuid | null {
  if (!text.startsWith(`${prefix}_`)) return null;
  const suffix = text.slice(prefix.length + 1);
  if (!SUFFIX.test(suffix)) return null;
  let value = 0;
  let bits = -2;
  let digits = '';
  for (const character of suffix) {
    value = (value << 5) | DECODE.get(character)!;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      digits += hex((value >>> bits) & 0xff, 2);
      value &= (1 << bits) - 1;
    }
  }
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}
