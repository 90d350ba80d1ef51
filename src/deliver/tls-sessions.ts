/** Caches the last TLS session per host, which makes the next handshake shorter. */
export class TlsSessions {
  readonly #limit: number;
  readonly #sessions = new Map<string, Buffer>();

  constructor(limit = 1000) {
    this.#limit = limit;
  }

  get(key: string): Buffer | undefined {
    return this.#sessions.get(key);
  }

  set(key: string, session: Buffer): void {
    // Delete first, so that the map is ordered by last use and the oldest entry is evicted.
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    if (this.#sessions.size > this.#limit) this.#sessions.delete(this.#sessions.keys().next().value!);
  }
}
