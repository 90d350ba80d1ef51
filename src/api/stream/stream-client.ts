import type { ServerResponse } from 'node:http';
import type { TailFilter, Watcher } from '../../telemetry/live-tail/index.ts';

/** After this many heartbeats that could not be sent, the client counts as gone, not slow. */
const MAX_MISSED_HEARTBEATS = 4;

/** One client of the live tail. Messages that it does not read in time are dropped and counted. */
export class StreamClient implements Watcher {
  readonly filter: TailFilter;
  readonly #response: ServerResponse;
  readonly #bufferBytes: number;
  #dropped = 0;
  #missedHeartbeats = 0;

  constructor(response: ServerResponse, filter: TailFilter, bufferBytes: number) {
    this.#response = response;
    this.filter = filter;
    this.#bufferBytes = bufferBytes;
  }

  show(text: string, messages: number): void {
    if (this.#isFull()) {
      this.#dropped += messages;
      return;
    }
    this.#reportDropped();
    this.#response.write(text);
  }

  /** Sends a comment, which keeps the connection open in proxies. */
  heartbeat(): void {
    if (this.#isFull()) {
      this.#missedHeartbeats += 1;
      if (this.#missedHeartbeats >= MAX_MISSED_HEARTBEATS) this.#response.destroy();
      return;
    }
    this.#missedHeartbeats = 0;
    this.#reportDropped();
    this.#response.write(': still here\n\n');
  }

  end(): void {
    // A client that does not read would delay the stop.
    if (this.#isFull()) this.#response.destroy();
    else this.#response.end();
  }

  #isFull(): boolean {
    return this.#response.writableLength > this.#bufferBytes;
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return;
    this.#response.write(`event: dropped\ndata: {"count":${this.#dropped}}\n\n`);
    this.#dropped = 0;
  }
}
