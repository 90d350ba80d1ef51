/**
 * The messages between processes: lengths, a head in JSON, and the payloads of the events. An event is
 * written once, however many deliveries it has.
 *
 *   u32 length of all that follows │ u32 length of the head │ head │ payloads
 */
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import { NO_LOAD, type ProcessLoad } from '../domain/load-meter.ts';
import type { Commit, CommittedDelivery } from '../ports/hand-over.ts';

export type PeerMessage =
  | ShardsMessage
  /** Deliveries that the sender has just committed, for shards of the receiver. */
  | {
      readonly kind: 'committed';
      readonly deliveries: readonly CommittedDelivery[];
      readonly commit: Commit;
    };

/** All shards that the sender owns and will keep, and its load. */
export interface ShardsMessage {
  readonly kind: 'shards';
  readonly shards: readonly number[];
  /** Null: an earlier version of Posthorn, which does not say who it is. */
  readonly from: Uuid | null;
  readonly load: ProcessLoad;
}

type EventHead = [
  event: Omit<EventContent, 'data'>,
  bytes: number,
  deliveries: [id: Uuid, endpointId: Uuid, dueAt: number | null, fifo: boolean][],
];
type Head =
  | { readonly owns: readonly number[]; readonly from?: Uuid; readonly load?: ProcessLoad }
  | { readonly events: readonly EventHead[]; readonly commit: Commit };

const LENGTH_BYTES = 4;
/** Larger than any commit, so a longer frame is not one of ours. */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;

export function encodeShards(shards: readonly number[], from: Uuid, load: ProcessLoad): Buffer {
  return encode({ owns: shards, from, load }, []);
}

/** The deliveries of one event must be next to each other, as they are in a commit. */
export function encodeCommitted(deliveries: readonly CommittedDelivery[], commit: Commit): Buffer {
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
  const start = Buffer.allocUnsafe(2 * LENGTH_BYTES);
  start.writeUInt32BE(
    payloads.reduce((sum, payload) => sum + payload.length, LENGTH_BYTES + text.length),
    0,
  );
  start.writeUInt32BE(text.length, LENGTH_BYTES);
  return Buffer.concat([start, text, ...payloads]);
}

/** Assembles messages from the pieces that a socket receives. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** Returns the messages that are complete. Throws if the bytes are not a frame. */
  read(piece: Buffer): PeerMessage[] {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const messages: PeerMessage[] = [];
    for (;;) {
      if (this.#bytes < LENGTH_BYTES) return messages;
      const length = this.#peek(LENGTH_BYTES).readUInt32BE(0);
      if (length < LENGTH_BYTES || length > MAX_FRAME_BYTES)
        throw new Error(`invalid frame of ${length} bytes`);
      if (this.#bytes < LENGTH_BYTES + length) return messages;
      const all = this.#peek(LENGTH_BYTES + length);
      messages.push(decode(all.subarray(LENGTH_BYTES, LENGTH_BYTES + length)));
      this.#pieces = all.length > LENGTH_BYTES + length ? [all.subarray(LENGTH_BYTES + length)] : [];
      this.#bytes -= LENGTH_BYTES + length;
    }
  }

  /** Returns a buffer that starts with the next `bytes` bytes. Joins the pieces only if necessary. */
  #peek(bytes: number): Buffer {
    if (this.#pieces[0]!.length < bytes) this.#pieces = [Buffer.concat(this.#pieces, this.#bytes)];
    return this.#pieces[0]!;
  }
}

function decode(frame: Buffer): PeerMessage {
  const payloadsAt = LENGTH_BYTES + frame.readUInt32BE(0);
  const message = JSON.parse(frame.toString('utf8', LENGTH_BYTES, payloadsAt)) as Head;
  // Earlier versions of Posthorn announce less.
  if ('owns' in message)
    return {
      kind: 'shards',
      shards: message.owns,
      from: message.from ?? null,
      load: message.load ?? NO_LOAD,
    };
  const deliveries: CommittedDelivery[] = [];
  let at = payloadsAt;
  for (const [head, bytes, rows] of message.events) {
    // Copied: a delivery that waits must not keep the whole frame in memory.
    const event: EventContent = { ...head, data: Buffer.from(frame.subarray(at, at + bytes)) };
    at += bytes;
    for (const [id, endpointId, dueAt, fifo] of rows)
      deliveries.push({ delivery: { id, endpointId, dueAt, fifo }, event });
  }
  return { kind: 'committed', deliveries, commit: message.commit };
}
