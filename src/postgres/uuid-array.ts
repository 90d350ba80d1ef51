/**
 * Parameters of the type uuid[] in PostgreSQL's binary format. In text format PostgreSQL takes 0.6 µs to read an id, in binary
 * format 0.1 µs. Reading the ids of a batch of events as text was a tenth of the processor time of its statements.
 */
import type { Uuid } from '../domain/ids.ts';

const UUID_TYPE = 2950;
const UUID_BYTES = 16;
/** Dimensions, flags, type of the elements, and of the only dimension its length and first index. */
const HEAD_BYTES = 20;
const ITEM_BYTES = 4 + UUID_BYTES;

/** The value of a hexadecimal digit by its character code. */
const INVALID = 0x1000;
const DIGITS = new Uint16Array(256).fill(INVALID);
for (const digit of '0123456789abcdefABCDEF') DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16);
/** Where the two digits of each byte are in the text of an id. */
const POSITIONS = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;

const digitAt = (id: Uuid, position: number): number => DIGITS[id.charCodeAt(position) & 0xff]!;

/** Returns a parameter for `$n::uuid[]`. Throws if one of the ids is not a UUID. */
export function uuidArray(ids: readonly Uuid[]): Buffer {
  const array = Buffer.allocUnsafe(HEAD_BYTES + ids.length * ITEM_BYTES);
  array.writeInt32BE(1, 0);
  array.writeInt32BE(0, 4);
  array.writeInt32BE(UUID_TYPE, 8);
  array.writeInt32BE(ids.length, 12);
  array.writeInt32BE(1, 16);
  let at = HEAD_BYTES;
  for (const id of ids) {
    at = array.writeInt32BE(UUID_BYTES, at);
    let bits = 0;
    for (const position of POSITIONS) {
      const byte = (digitAt(id, position) << 4) | digitAt(id, position + 1);
      bits |= byte;
      array[at] = byte;
      at += 1;
    }
    if (bits >= INVALID) throw new Error(`"${id}" is not a UUID.`);
  }
  return array;
}
