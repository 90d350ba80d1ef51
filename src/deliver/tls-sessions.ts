/** The last TLS session with each of the most recent hosts: with it the next handshake is shorter. */
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
    // Deleted first, so that the map's order is that of last use, and the oldest goes.
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    if (this.#sessions.size > this.#limit) this.#sessions.delete(this.#sessions.keys().next().value!);
  }
}
