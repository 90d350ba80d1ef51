/**
 * What processes of one node say to each other, as bytes: a length, a head in JSON, and the payloads of its events one
 * after another. An event is written once, however many deliveries it has.
 *
 *   u32 length of all that follows │ u32 length of the head │ head │ payloads
 */
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { NewDelivery } from '../ports/accept-log.ts';
import type { Commit } from '../ports/hand-over.ts';

export interface HandedDelivery {
  readonly delivery: NewDelivery;
  readonly event: EventContent;
}

export type SiblingMessage =
  /** All the shards that the one who says so works on. */
  | { readonly kind: 'owns'; readonly shards: readonly number[] }
  /** Committed just now, for shards of the one who is told. */
  | { readonly kind: 'committed'; readonly deliveries: readonly HandedDelivery[]; readonly commit: Commit };

type EventHead = [
  event: Omit<EventContent, 'data'>,
  bytes: number,
  deliveries: [id: Uuid, endpointId: Uuid, dueAt: number | null, fifo: boolean][],
];
type Head =
  | { readonly owns: readonly number[] }
  | { readonly events: readonly EventHead[]; readonly commit: Commit };

const WORD = 4;
/** More than any batch of commits has: whoever says so does not speak this language. */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;

export function encodeOwns(shards: readonly number[]): Buffer {
  return encode({ owns: shards }, []);
}

/** Deliveries of one event stand next to each other, as a commit hands them on. */
export function encodeCommitted(deliveries: readonly HandedDelivery[], commit: Commit): Buffer {
  const events: EventHead[] = [];
  const payloads: Buffer[] = [];
  let last: EventContent | null = null;
  for (const { delivery, event } of deliveries) {
    if (event !== last) {
      const { data, ...head } = event;
      events.push([head, data.length, []]);
      payloads.push(data);
      last = event;
    }
    events.at(-1)![2].push([delivery.id, delivery.endpointId, delivery.dueAt, delivery.fifo]);
  }
  return encode({ events, commit }, payloads);
}

function encode(head: Head, payloads: readonly Buffer[]): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const start = Buffer.allocUnsafe(2 * WORD);
  start.writeUInt32BE(
    payloads.reduce((sum, payload) => sum + payload.length, WORD + text.length),
    0,
  );
  start.writeUInt32BE(text.length, WORD);
  return Buffer.concat([start, text, ...payloads]);
}

/** Puts messages together again from the pieces in which a socket brings them. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** Throws if this is no frame. */
  read(piece: Buffer): SiblingMessage[] {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const messages: SiblingMessage[] = [];
    for (;;) {
      if (this.#bytes < WORD) return messages;
      const length = this.#joined(WORD).readUInt32BE(0);
      if (length < WORD || length > MAX_FRAME_BYTES) throw new Error(`a frame of ${length} bytes`);
      if (this.#bytes < WORD + length) return messages;
      const all = this.#joined(WORD + length);
      messages.push(decode(all.subarray(WORD, WORD + length)));
      this.#pieces = all.length > WORD + length ? [all.subarray(WORD + length)] : [];
      this.#bytes -= WORD + length;
    }
  }

  /** The first piece, made at least so long. */
  #joined(bytes: number): Buffer {
    if (this.#pieces[0]!.length < bytes) this.#pieces = [Buffer.concat(this.#pieces, this.#bytes)];
    return this.#pieces[0]!;
  }
}

function decode(frame: Buffer): SiblingMessage {
  const payloadsAt = WORD + frame.readUInt32BE(0);
  const head = JSON.parse(frame.toString('utf8', WORD, payloadsAt)) as Head;
  if ('owns' in head) return { kind: 'owns', shards: head.owns };
  const deliveries: HandedDelivery[] = [];
  let at = payloadsAt;
  for (const [about, bytes, rows] of head.events) {
    // Copied: a delivery that waits for long must not keep the whole frame in memory.
    const event: EventContent = { ...about, data: Buffer.from(frame.subarray(at, at + bytes)) };
    at += bytes;
    for (const [id, endpointId, dueAt, fifo] of rows)
      deliveries.push({ delivery: { id, endpointId, dueAt, fifo }, event });
  }
  return { kind: 'committed', deliveries, commit: head.commit };
}
