/**
 * One request on one connection, as undici reports it: collects the response up to the cap and ends exactly once. Calls
 * of undici after the end are ignored.
 *
 * It ends in one of three ways: complete (the connection can be reused), cut short by the cap, a redirect or the deadline
 * (the connection is closed), or failed (the connection is closed).
 */
import type { Dispatcher } from 'undici';
import { DeliveryError } from './classify-error.ts';
import type { ConnectTimes } from './connector.ts';
import type { Slot, SlotHandler } from './socket-pool.ts';

export interface ExchangeOwner {
  readonly responseCapBytes: number;
  /** Cap for all bytes that are read of one response: status line, headers, framing and body. */
  readonly wireCapBytes: number;
  /** Called before the request is written. Returns the reason why it must not be sent. Null: it may be sent. */
  findRefusal(): DeliveryError | null;
  /** Called after the status line. Returns whether to read the body. */
  wantsBody(exchange: Exchange): boolean;
  /** Called once, unless `cutShort` was called. `error` is null if the response ended or reached the cap. */
  onExchangeEnded(exchange: Exchange, error: unknown): void;
}

const EMPTY = Buffer.alloc(0);
/** The exchange fails after this many informational responses: the receiver will probably never send a final one. */
const MAX_INFORMATIONAL = 16;

export class Exchange implements SlotHandler {
  status: number | null = null;
  headers: Record<string, string> | null = null;
  /** True if the body is incomplete. */
  isTruncated = false;
  /** Null: the connection was already open. */
  times: ConnectTimes | null = null;
  /** True if any byte of a response arrived. */
  hasBegun = false;
  /** True if the connection carried a request before this one. */
  isReused: boolean;
  readonly #owner: ExchangeOwner;
  readonly #slot: Slot;
  #informational = 0;
  #chunks: Buffer[] | null = null;
  #received = 0;
  #wireBytes = 0;
  /** The bytes that were read before the status was known: usually one chunk. */
  #head: Buffer[] = [];
  #isOver = false;

  constructor(owner: ExchangeOwner, slot: Slot) {
    this.#owner = owner;
    this.#slot = slot;
    this.isReused = slot.wasUsed;
  }

  start(options: Dispatcher.DispatchOptions): void {
    this.#slot.dispatch(options, this);
  }

  /** True while the connection is being opened: DNS, TCP or TLS. */
  get isConnecting(): boolean {
    return this.#slot.isConnecting;
  }

  get body(): Buffer | null {
    if (this.status === null) return null;
    if (this.#chunks === null) return EMPTY;
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#received);
  }

  /** Ends the exchange early and keeps the part of the response that has arrived. */
  cutShort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.isTruncated = this.status !== null;
    this.#slot.drop();
  }

  onConnected(times: ConnectTimes): void {
    this.times = times;
    this.isReused = false;
  }

  mayRead(): boolean {
    if (this.#isOver || this.#wireBytes <= this.#owner.wireCapBytes) return true;
    if (this.status === null) this.#fail(new DeliveryError('response_headers_too_large'));
    else {
      this.isTruncated = true;
      this.#end();
    }
    return false;
  }

  onReceived(chunk: Buffer): void {
    this.#wireBytes += chunk.length;
    if (this.status === null && !this.#isOver) this.#head.push(chunk);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const refusal = this.#owner.findRefusal();
    // Connecting may have taken long, and a process that was suspended may resume exactly here.
    if (refusal !== null && !this.#isOver) controller.abort(refusal);
  }

  onResponseStarted(): void {
    this.hasBegun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#isOver) return;
    if (status < 100 || !isHttp1(this.#head, this.#informational)) {
      this.#fail(new DeliveryError('response_invalid'));
      return;
    }
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) this.#fail(new DeliveryError('http_1xx'));
      return;
    }
    this.status = status;
    this.#head = [];
    this.headers = flatten(headers);
    if (!this.#owner.wantsBody(this)) this.#end();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    const room = this.#owner.responseCapBytes - this.#received;
    // Copied, because the chunk is a view that would keep a much larger read buffer in memory.
    const kept = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#received += kept.length;
    if (this.#chunks === null) this.#chunks = [kept];
    else this.#chunks.push(kept);
    if (chunk.length <= room) return;
    this.isTruncated = true;
    this.#end();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#slot.release();
    this.#owner.onExchangeEnded(this, null);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#isOver) return;
    if (this.status === null) {
      this.#fail(this.#isUnexpectedInterim(error) ? new DeliveryError('http_1xx') : error);
      return;
    }
    // The status decides the outcome. An error after it only truncates the body.
    this.isTruncated = true;
    this.#end();
  }

  /** On an unexpected 100 or 101 undici closes the connection, with the same code as if the peer had closed it. */
  #isUnexpectedInterim(error: Error): boolean {
    const code = (error as NodeJS.ErrnoException).code;
    return code === 'UND_ERR_SOCKET' && this.hasBegun && !this.#slot.hasPeerEnded;
  }

  #end(): void {
    this.#isOver = true;
    this.#slot.drop();
    this.#owner.onExchangeEnded(this, null);
  }

  #fail(error: unknown): void {
    this.#isOver = true;
    this.#slot.drop();
    this.#owner.onExchangeEnded(this, error);
  }
}

/** Some servers send an extra empty line after the previous response. */
const STATUS_LINE = /^[\r\n]*HTTP\/1\.[01] /;
const HEAD_END = /\r?\n\r?\n/g;

/**
 * undici accepts other protocols in a status line, such as HTTP/2.0, and does not report them. `preceding`: the number of
 * responses before this one.
 */
function isHttp1(head: readonly Buffer[], preceding: number): boolean {
  if (preceding === 0 && head[0] !== undefined && STATUS_LINE.test(head[0].toString('latin1', 0, 9)))
    return true;
  const text = Buffer.concat(head).toString('latin1');
  let start = 0;
  HEAD_END.lastIndex = 0;
  for (let n = 0; n < preceding; n += 1) {
    if (HEAD_END.exec(text) === null) return false;
    start = HEAD_END.lastIndex;
  }
  return STATUS_LINE.test(text.slice(start, start + 32));
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string') headers[name] = value === undefined ? '' : value.join(', ');
  }
  return headers as Record<string, string>;
}
