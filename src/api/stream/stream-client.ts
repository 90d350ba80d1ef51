import type { ServerResponse } from 'node:http';
import type { TailFilter, Watcher } from '../../telemetry/live-tail/index.ts';

/** So many signs of life in a row that did not get through: it is not slow, it is gone. */
const LOST_HEARTBEATS = 4;

/** One who watches. What it does not read in time is dropped and counted; nobody waits for it. */
export class StreamClient implements Watcher {
  readonly filter: TailFilter;
  readonly #response: ServerResponse;
  readonly #bufferBytes: number;
  #dropped = 0;
  #lost = 0;

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
    this.#tellDropped();
    this.#response.write(text);
  }

  /** A comment, so that proxies and the other side see that the connection lives. */
  heartbeat(): void {
    if (this.#isFull()) {
      this.#lost += 1;
      if (this.#lost >= LOST_HEARTBEATS) this.#response.destroy();
      return;
    }
    this.#lost = 0;
    this.#tellDropped();
    this.#response.write(': still here\n\n');
  }

  end(): void {
    // One that does not read would hold up the stop.
    if (this.#isFull()) this.#response.destroy();
    else this.#response.end();
  }

  #isFull(): boolean {
    return this.#response.writableLength > this.#bufferBytes;
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    this.#response.write(`event: dropped\ndata: {"count":${this.#dropped}}\n\n`);
    this.#dropped = 0;
  }
}
