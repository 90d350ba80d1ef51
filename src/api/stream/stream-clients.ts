import type { Clock } from '../../domain/clock.ts';
import { Problem } from '../../domain/problem.ts';
import type { StreamLimits } from '../dependencies.ts';
import type { Authenticator } from '../http/authenticator.ts';
import { scopesNeededBy } from '../http/route-scopes.ts';
import type { Sender } from '../http/sender.ts';
import type { StreamClient } from './stream-client.ts';

const NEEDED = scopesNeededBy('streamEvents');

/** Who opens a live tail. */
interface Owner {
  /** Its key or user. */
  readonly key: string;
  /** The only tenant of the key or user. Null: it may see all tenants. */
  readonly tenant: string | null;
}

interface Access extends Owner {
  readonly sender: Sender;
}

/** The open clients of the live tail: limits their number, keeps them alive, and ends those whose key was revoked or narrowed. */
export class StreamClients {
  readonly #limits: StreamLimits;
  readonly #clock: Clock;
  readonly #authenticator: Authenticator;
  readonly #clients = new Map<StreamClient, Access>();
  #cancelHeartbeat: (() => void) | null = null;

  constructor(limits: StreamLimits, clock: Clock, authenticator: Authenticator) {
    this.#limits = limits;
    this.#clock = clock;
    this.#authenticator = authenticator;
  }

  /** Throws `rate_limited` if no client may be added for this key or tenant. */
  checkLimits({ key, tenant }: Owner): void {
    const { clients, clientsPerKey, clientsPerTenant } = this.#limits;
    const open = [...this.#clients.values()];
    if (open.filter((client) => client.key === key).length >= clientsPerKey)
      throw tooMany(`This key has ${clientsPerKey} live tails open, the maximum. Close one`);
    if (tenant !== null && open.filter((client) => client.tenant === tenant).length >= clientsPerTenant)
      throw tooMany(
        `The keys of this tenant have ${clientsPerTenant} live tails open together, the maximum. Close one`,
      );
    if (open.length >= clients)
      throw tooMany(`This server has ${clients} live tails open, the maximum. Close one of yours`);
  }

  add(client: StreamClient, access: Access): void {
    this.#clients.set(client, access);
    this.#cancelHeartbeat ??= this.#clock.after(this.#limits.heartbeatMs, () => this.#beat());
  }

  delete(client: StreamClient): void {
    this.#clients.delete(client);
  }

  has(client: StreamClient): boolean {
    return this.#clients.has(client);
  }

  endAll(): void {
    this.#cancelHeartbeat?.();
    for (const client of this.#clients.keys()) client.end();
  }

  #beat(): void {
    for (const [client, { sender }] of this.#clients) {
      client.heartbeat();
      void this.#endIfForbidden(client, sender);
    }
    this.#cancelHeartbeat =
      this.#clients.size === 0 ? null : this.#clock.after(this.#limits.heartbeatMs, () => this.#beat());
  }

  async #endIfForbidden(client: StreamClient, sender: Sender): Promise<void> {
    // An unreachable database does not make the key invalid.
    const isAllowed = await this.#authenticator.isStillAllowed(sender, NEEDED).catch(() => true);
    if (!isAllowed) client.end();
  }
}

function tooMany(detail: string): Problem {
  return new Problem('rate_limited', `${detail}, or try again later.`, { retryAfterSeconds: 10 });
}
