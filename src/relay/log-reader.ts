/**
 * Turns the messages of a replication stream into events, in the order of their commits, and computes which position may
 * be confirmed. It does no I/O.
 *
 * A position may be confirmed when every event before it is finished. So events are counted, and each end of a
 * transaction records how many events had been read by then.
 */
import { createHash } from 'node:crypto';
import { type Begin, microsToUnixMs, PgOutputDecoder } from './pgoutput.ts';
import { bodyOfRow, createdAtOfRow } from './row-body.ts';
import type { Incoming } from './sink.ts';

export const MESSAGE_PREFIX = 'posthorn';

export interface ReplicatedEvent extends Incoming {
  /** True if the event is a row of the table, which must be removed from there. */
  readonly isRow: boolean;
  /** The transaction that wrote it. */
  readonly xid: number;
  /** When it was committed, by the source's clock. */
  readonly committedAt: number;
}

export interface LogReaderOptions {
  readonly table: { readonly schema: string; readonly name: string } | null;
  /** The name of the source. Part of the ids that are made for messages without an id. */
  readonly source: string;
  readonly maxEventBytes: number;
}

/** Memory that an event takes besides its body. */
const OVERHEAD_BYTES = 512;
/** How much larger than its data a message may be, for names and headers. */
const BODY_ALLOWANCE_BYTES = 512 * 1024;

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #decoder: PgOutputDecoder;
  #transaction: Begin | null = null;
  #hasFailed = false;
  #ordinal = 0;
  #waiting: ReplicatedEvent[] = [];
  #waitingBytes = 0;
  #readCount = 0;
  #finishedCount = 0;
  #ends: { readCount: number; lsn: bigint }[] = [];

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

  /** When the oldest unfinished event was committed. Null: all are finished. */
  get oldestCommittedAt(): number | null {
    return this.#oldest;
  }
  #oldest: number | null = null;

  /** Reads one message. If this throws, an event is missing, so no later position may be confirmed. */
  read(payload: Buffer): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#readChange(payload);
    this.#hasFailed = false;
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
        this.#recordEnd(change.endLsn);
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

  /** Call this when the server has sent everything up to `lsn`, so that the slot advances past changes of other tables. */
  onCaughtUp(lsn: bigint): void {
    if (this.#transaction === null && !this.#hasFailed) this.#recordEnd(lsn);
  }

  take(maxRows: number, maxBytes: number): ReplicatedEvent[] {
    let count = 0;
    let bytes = 0;
    while (count < this.#waiting.length && count < maxRows) {
      const size = this.#waiting[count]!.body.length + OVERHEAD_BYTES;
      // Take the first event even if it is too large, or it would wait forever.
      if (count > 0 && bytes + size > maxBytes) break;
      bytes += size;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  /** Finishes the next `count` events that were taken. Returns the position that may be confirmed. Null: none is new. */
  finish(count: number): bigint | null {
    this.#finishedCount += count;
    this.#oldest =
      this.#finishedCount === this.#readCount ? null : (this.#waiting[0]?.committedAt ?? this.#oldest);
    let confirmed: bigint | null = null;
    while (this.#ends.length > 0 && this.#ends[0]!.readCount <= this.#finishedCount)
      confirmed = this.#ends.shift()!.lsn;
    return confirmed;
  }

  #recordEnd(lsn: bigint): void {
    const last = this.#ends.at(-1);
    if (last?.readCount === this.#readCount) last.lsn = lsn;
    else this.#ends.push({ readCount: this.#readCount, lsn });
  }

  #addRow(values: ReadonlyMap<string, Buffer | null>): void {
    const dataBytes = values.get('data')?.length ?? 0;
    const isTooLarge = dataBytes > this.#options.maxEventBytes;
    // bodyOfRow copies, so nothing of the network buffer is kept.
    const body = bodyOfRow(isTooLarge ? new Map([...values, ['data', null]]) : values);
    const problem = isTooLarge ? `data: has ${dataBytes} bytes, more than the limit for an event` : null;
    const id = values.get('id')!.toString();
    this.#add({ id, createdAt: createdAtOfRow(values), body, mayCarryId: false, problem, isRow: true });
  }

  #addMessage(content: Buffer, transactional: boolean, lsn: bigint): void {
    const isTooLarge = content.length > this.#options.maxEventBytes + BODY_ALLOWANCE_BYTES;
    const body = Buffer.from(isTooLarge ? content.subarray(0, OVERHEAD_BYTES) : content);
    let problem: string | null = null;
    if (!transactional)
      problem =
        'the message is not part of a transaction: the first argument of pg_logical_emit_message must be true';
    else if (isTooLarge) problem = `has ${content.length} bytes, more than the limit for an event`;
    const id = this.#idFromPosition(lsn);
    this.#add({ id, createdAt: this.#committedAt(), body, mayCarryId: true, problem, isRow: false });
  }

  #committedAt(): number {
    return this.#transaction === null ? Date.now() : microsToUnixMs(this.#transaction.committedAtMicros);
  }

  #add(item: Incoming & { isRow: boolean }): void {
    const committedAt = this.#committedAt();
    this.#ordinal += 1;
    this.#readCount += 1;
    this.#oldest ??= committedAt;
    this.#waiting.push({ ...item, xid: this.#transaction?.xid ?? 0, committedAt });
    this.#waitingBytes += item.body.length + OVERHEAD_BYTES;
  }

  /**
   * Makes an id from the position in the log. Positions alone would repeat after a restore from a backup, so the id also
   * depends on the time and the number of the transaction.
   */
  #idFromPosition(lsn: bigint): string {
    const transaction = this.#transaction;
    const position =
      transaction === null
        ? `at ${lsn}`
        : `${transaction.commitLsn} ${transaction.committedAtMicros} ${transaction.xid} ${this.#ordinal}`;
    const hex = createHash('sha256').update(`${this.#options.source}\n${position}`).digest('hex');
    // A UUID of version 8, which is for custom formats.
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }
}
