/** Connections of the run's own, so that none is left when it is over. */
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
