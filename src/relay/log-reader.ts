/**
 * From the messages of a replication stream to events, in the order of their commits, and to positions that may be
 * confirmed. Pure: what arrives goes in, what has to be done comes out.
 *
 * A position may be confirmed when everything that arrived before it is done. So arrivals are numbered, and each end of
 * a transaction remembers how many had arrived by then.
 */
import { createHash } from 'node:crypto';
import { type Begin, microsToUnixMs, PgOutputDecoder } from './pgoutput.ts';
import { bodyOfRow, madeAtOfRow } from './row-to-body.ts';
import type { Incoming } from './sink.ts';

export const MESSAGE_PREFIX = 'posthorn';

export interface Arrival extends Incoming {
  /** It is a row of the table, which has to be removed from there. */
  readonly isRow: boolean;
  /** Of the transaction that it came with. */
  readonly xid: number;
  /** By the source's clock. */
  readonly committedAt: number;
}

export interface LogReaderOptions {
  readonly table: { readonly schema: string; readonly name: string } | null;
  /** Of the source: part of the ids that are made for messages without one. */
  readonly source: string;
  readonly maxEventBytes: number;
}

/** What an arrival costs in memory besides its body. */
const OVERHEAD_BYTES = 512;
/** Around the data of an event there is not much: names, headers. */
const BODY_ALLOWANCE_BYTES = 512 * 1024;

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #decoder: PgOutputDecoder;
  #transaction: Begin | null = null;
  #broken = false;
  #ordinal = 0;
  #waiting: Arrival[] = [];
  #waitingBytes = 0;
  #arrived = 0;
  #done = 0;
  #ends: { arrived: number; lsn: bigint }[] = [];

  constructor(options: LogReaderOptions) {
    this.#options = options;
    const { table } = options;
    this.#decoder = new PgOutputDecoder((schema, name) => schema === table?.schema && name === table.name);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** When the oldest that is not done was committed; null: everything that arrived is done. */
  get oldestCommittedAt(): number | null {
    return this.#oldest;
  }
  #oldest: number | null = null;

  /** Once this has thrown, something is missing: nothing that comes after it is ever confirmed. */
  read(payload: Buffer): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#readChange(payload);
    this.#broken = false;
  }

  #readChange(payload: Buffer): void {
    const change = this.#decoder.decode(payload);
    switch (change.kind) {
      case 'begin':
        this.#transaction = change;
        this.#ordinal = 0;
        return;
      case 'commit':
        this.#transaction = null;
        this.#mark(change.endLsn);
        return;
      case 'insert':
        this.#addRow(change.values);
        return;
      case 'message':
        if (change.prefix === MESSAGE_PREFIX)
          this.#addMessage(change.content, change.transactional, change.lsn);
        return;
      case 'other':
        return;
    }
  }

  /** The server has nothing more up to here: what others write moves the slot on too. */
  caughtUp(lsn: bigint): void {
    if (this.#transaction === null && !this.#broken) this.#mark(lsn);
  }

  take(maxRows: number, maxBytes: number): Arrival[] {
    let count = 0;
    let bytes = 0;
    while (count < this.#waiting.length && count < maxRows) {
      const size = this.#waiting[count]!.body.length + OVERHEAD_BYTES;
      // The first is taken whatever its size, or it would wait for ever.
      if (count > 0 && bytes + size > maxBytes) break;
      bytes += size;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  /** So many of those that were taken are done, in their order. Returns what may be confirmed; null: nothing new. */
  finish(count: number): bigint | null {
    this.#done += count;
    this.#oldest = this.#done === this.#arrived ? null : (this.#waiting[0]?.committedAt ?? this.#oldest);
    let confirmed: bigint | null = null;
    while (this.#ends.length > 0 && this.#ends[0]!.arrived <= this.#done) confirmed = this.#ends.shift()!.lsn;
    return confirmed;
  }

  #mark(lsn: bigint): void {
    const last = this.#ends.at(-1);
    if (last?.arrived === this.#arrived) last.lsn = lsn;
    else this.#ends.push({ arrived: this.#arrived, lsn });
  }

  #addRow(values: ReadonlyMap<string, Buffer | null>): void {
    const dataBytes = values.get('data')?.length ?? 0;
    const tooLarge = dataBytes > this.#options.maxEventBytes;
    // bodyOfRow copies, so nothing of the network buffer is kept.
    const body = bodyOfRow(tooLarge ? new Map([...values, ['data', null]]) : values);
    const problem = tooLarge ? `data: has ${dataBytes} bytes, too many for an event` : null;
    const id = values.get('id')!.toString();
    this.#add({ id, madeAt: madeAtOfRow(values), body, mayCarryId: false, problem, isRow: true });
  }

  #addMessage(content: Buffer, transactional: boolean, lsn: bigint): void {
    const tooLarge = content.length > this.#options.maxEventBytes + BODY_ALLOWANCE_BYTES;
    const body = Buffer.from(tooLarge ? content.subarray(0, OVERHEAD_BYTES) : content);
    let problem: string | null = null;
    if (!transactional)
      problem =
        'the message is not part of a transaction: the first argument of pg_logical_emit_message must be true';
    else if (tooLarge) problem = `has ${content.length} bytes, too many for an event`;
    const id = this.#placeId(lsn);
    this.#add({ id, madeAt: this.#committedAt(), body, mayCarryId: true, problem, isRow: false });
  }

  #committedAt(): number {
    return this.#transaction === null ? Date.now() : microsToUnixMs(this.#transaction.committedAtMicros);
  }

  #add(item: Incoming & { isRow: boolean }): void {
    const committedAt = this.#committedAt();
    this.#ordinal += 1;
    this.#arrived += 1;
    this.#oldest ??= committedAt;
    this.#waiting.push({ ...item, xid: this.#transaction?.xid ?? 0, committedAt });
    this.#waitingBytes += item.body.length + OVERHEAD_BYTES;
  }

  /**
   * An id from the place in the log. Positions alone would come again after a restore from a backup; with the time and
   * the number of the transaction they do not.
   */
  #placeId(lsn: bigint): string {
    const transaction = this.#transaction;
    const place =
      transaction === null
        ? `at ${lsn}`
        : `${transaction.commitLsn} ${transaction.committedAtMicros} ${transaction.xid} ${this.#ordinal}`;
    const hex = createHash('sha256').update(`${this.#options.source}\n${place}`).digest('hex');
    // Shaped as a UUID of version 8: "made by a rule of one's own".
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }
}
