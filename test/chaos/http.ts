/** An HTTP client with its own connections, which are closed after the run. */
import { Agent, fetch, type RequestInit, type Response } from 'undici';

export class Http {
  readonly #agent = new Agent({ keepAliveTimeout: 1000, connections: 64 });

  fetch(url: string, init: RequestInit = {}): Promise<Response> {
    return fetch(url, { ...init, dispatcher: this.#agent });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
