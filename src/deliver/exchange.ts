/**
 * One request on one connection, as undici reports it: collects the response up to the cap and ends exactly once.
 * What undici still has to say about a connection that was let go of or cut off is not listened to any more.
 *
 * Ends: complete (the connection can carry another), cut short (cap, redirect, deadline: the connection is dropped),
 * or failed (so is it).
 */
import type { Dispatcher } from 'undici';
import { DeliveryError } from './classify-error.ts';
import type { ConnectTimes } from './connector.ts';
import type { Passenger, Slot } from './socket-pool.ts';

export interface ExchangeOwner {
  readonly responseCapBytes: number;
  /** The connection is open and the request about to be written: null, or why it must not be. */
  refusal(): DeliveryError | null;
  /** The status line has come: is the body wanted? */
  wantsBody(exchange: Exchange): boolean;
  /** Called once, unless `cut` was. `error` is null if the response ended, or was as long as we read. */
  ended(exchange: Exchange, error: unknown): void;
}

const EMPTY = Buffer.alloc(0);
/** A receiver that sends more of these than anyone needs is not going to answer. */
const MAX_INFORMATIONAL = 16;

export class Exchange implements Passenger {
  status: number | null = null;
  headers: Record<string, string> | null = null;
  /** The body is not all that the receiver sent, or wanted to send. */
  truncated = false;
  /** Null: the connection was open already. */
  times: ConnectTimes | null = null;
  /** Whether any byte of a response came. */
  began = false;
  /** Whether the connection had carried a request before this one. */
  reused: boolean;
  readonly #owner: ExchangeOwner;
  readonly #slot: Slot;
  #informational = 0;
  #chunks: Buffer[] | null = null;
  #received = 0;
  #over = false;

  constructor(owner: ExchangeOwner, slot: Slot) {
    this.#owner = owner;
    this.#slot = slot;
    this.reused = slot.warm;
  }

  start(options: Dispatcher.DispatchOptions): void {
    this.#slot.dispatch(options, this);
  }

  /** Nothing is open yet: it still resolves, connects or shakes hands. */
  get connecting(): boolean {
    return this.#slot.connecting;
  }

  get body(): Buffer | null {
    if (this.status === null) return null;
    if (this.#chunks === null) return EMPTY;
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#received);
  }

  /** Ends it from outside: whatever came so far is what there is. */
  cut(): void {
    if (this.#over) return;
    this.#over = true;
    this.truncated = this.status !== null;
    this.#slot.drop();
  }

  connected(times: ConnectTimes): void {
    this.times = times;
    this.reused = false;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const refusal = this.#owner.refusal();
    // Connecting may have taken long, and a process that was stopped meanwhile wakes right here.
    if (refusal !== null && !this.#over) controller.abort(refusal);
  }

  onResponseStarted(): void {
    this.began = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#over) return;
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) this.#fail(new DeliveryError('http_1xx'));
      return;
    }
    this.status = status;
    this.headers = flatten(headers);
    if (!this.#owner.wantsBody(this)) this.#end();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    const room = this.#owner.responseCapBytes - this.#received;
    // Copied, because the chunk is a view of a much larger read buffer that would live as long as it does.
    const kept = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#received += kept.length;
    if (this.#chunks === null) this.#chunks = [kept];
    else this.#chunks.push(kept);
    if (chunk.length <= room) return;
    this.truncated = true;
    this.#end();
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#over = true;
    this.#slot.release();
    this.#owner.ended(this, null);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#over) return;
    if (this.status === null) {
      this.#fail(this.#isUnaskedInterim(error) ? new DeliveryError('http_1xx') : error);
      return;
    }
    // The status line has decided; what breaks afterwards only cuts the body short.
    this.truncated = true;
    this.#end();
  }

  /** undici ends a connection on a 100 or 101 that nobody asked for, by the code it has for one the peer ended. */
  #isUnaskedInterim(error: Error): boolean {
    const code = (error as NodeJS.ErrnoException).code;
    return code === 'UND_ERR_SOCKET' && this.began && !this.#slot.peerEnded;
  }

  #end(): void {
    this.#over = true;
    this.#slot.drop();
    this.#owner.ended(this, null);
  }

  #fail(error: unknown): void {
    this.#over = true;
    this.#slot.drop();
    this.#owner.ended(this, error);
  }
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string') headers[name] = value === undefined ? '' : value.join(', ');
  }
  return headers as Record<string, string>;
}
