/**
 * Ids with the current time. `newId` of the domain cannot be used: its ids never go back in time, and unit tests in the
 * same process use clocks that are years ahead.
 */
import { randomBytes } from 'node:crypto';
import type { Uuid } from '../../../src/domain/ids.ts';

let lastMs = 0;
let counter = 0;

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0');

function createId(tail: string): Uuid {
  const now = Date.now();
  counter = now > lastMs ? 0 : counter + 1;
  // More than 4,096 ids in a millisecond borrow from the next one.
  lastMs = counter > 0xfff ? lastMs + 1 : Math.max(now, lastMs);
  if (counter > 0xfff) counter = 0;
  return idAt(lastMs, counter, tail);
}

function idAt(ms: number, count: number, tail: string): Uuid {
  const time = hex(ms, 12);
  const random = randomBytes(6).toString('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(count, 3)}-8${random.slice(0, 3)}-${random.slice(4, 12)}${tail}`;
}

export const newId = (): Uuid => createId(randomBytes(2).toString('hex'));
export const newEventId = (): Uuid => createId('0000');
/** An event id of version 8, with 20 bits for the ordinals of its deliveries. */
export const newWideEventId = (): Uuid =>
  createId('0000').replace(/^(?<head>.{14})7(?<rest>.*).{5}$/, '$<head>8$<rest>00000');
/** An event id that was made at this time. */
export const eventIdAt = (ms: number): Uuid => idAt(ms, 0, '0000');

/** The last byte of an endpoint's id is its shard. */
export function endpointIdOf(shard?: number): Uuid {
  const id = newId();
  return shard === undefined ? id : id.slice(0, 34) + hex(shard, 2);
}
