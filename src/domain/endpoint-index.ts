/**
 * All endpoints of the deployment, with the views of them that are needed often. A deployment may have a million
 * endpoints, and a scan of all of them would block the process.
 */
import { type Endpoint, SHARDS, shardOf, shardOfLane } from './endpoint.ts';
import { RESERVED_TYPE_PREFIX } from './event.ts';
import type { Uuid } from './ids.ts';
import { inboxTokensIn } from './inbox-token.ts';

/** Counts of endpoints that are not deleted, with notifiers. An endpoint that is disabled does not count as paused. */
export interface EndpointTotals {
  readonly endpoints: number;
  readonly disabled: number;
  readonly paused: number;
  /** How many of these endpoints are notifiers. Lists of endpoints do not show notifiers. */
  readonly notifiers: number;
  readonly disabledNotifiers: number;
  /** The patterns in the `events` of all of them. */
  readonly patterns: number;
}

type Totals = { -readonly [name in keyof EndpointTotals]: number };

const newTotals = (): Totals => ({
  endpoints: 0,
  disabled: 0,
  paused: 0,
  notifiers: 0,
  disabledNotifiers: 0,
  patterns: 0,
});
const NONE: EndpointTotals = newTotals();

export class EndpointIndex<E extends Endpoint = Endpoint> {
  /** By the shard that the id has in the default region. A second map of all endpoints would cost memory for every endpoint. */
  readonly #byShard = Array.from({ length: SHARDS }, () => new Map<Uuid, E>());
  readonly #totalsOfShards = new Map<number, Totals>();
  readonly #totalsOfTenants = new Map<string, Totals>();
  readonly #totals = newTotals();
  readonly #operational = new Map<Uuid, E>();
  readonly #atInboxes = new Map<string, Map<Uuid, E>>();

  get(id: Uuid): E | undefined {
    return this.#byShard[shardOf(id)]!.get(id);
  }

  *all(): Generator<E, void> {
    for (const endpoints of this.#byShard) yield* endpoints.values();
  }

  /** Endpoints whose lane is in the shard, of any region. */
  *ofShard(shard: number): Generator<E, void> {
    for (const endpoint of this.#byShard[shard % SHARDS]!.values())
      if (shardOfLane(endpoint) === shard) yield endpoint;
  }

  /** Endpoints that are not deleted and subscribe to operational events, and notifiers. */
  operational(): Iterable<E> {
    return this.#operational.values();
  }

  /** Endpoints that are not deleted and whose URL has the token of the inbox. */
  atInbox(token: string): Iterable<E> {
    return this.#atInboxes.get(token)?.values() ?? [];
  }

  /** Null: of all tenants. */
  totalsOf(tenant: string | null): EndpointTotals {
    return tenant === null ? this.#totals : (this.#totalsOfTenants.get(tenant) ?? NONE);
  }

  totalsOfShard(shard: number): EndpointTotals {
    return this.#totalsOfShards.get(shard) ?? NONE;
  }

  set(endpoint: E): void {
    this.delete(endpoint.id);
    this.#byShard[shardOf(endpoint.id)]!.set(endpoint.id, endpoint);
    if (endpoint.deleted) return;
    this.#count(endpoint, 1);
    if (isOperational(endpoint)) this.#operational.set(endpoint.id, endpoint);
    for (const token of inboxTokensIn(endpoint.url)) {
      const others = this.#atInboxes.get(token);
      if (others === undefined) this.#atInboxes.set(token, new Map([[endpoint.id, endpoint]]));
      else others.set(endpoint.id, endpoint);
    }
  }

  delete(id: Uuid): void {
    const known = this.get(id);
    if (known === undefined) return;
    this.#byShard[shardOf(id)]!.delete(id);
    if (known.deleted) return;
    this.#count(known, -1);
    this.#operational.delete(id);
    for (const token of inboxTokensIn(known.url)) {
      const others = this.#atInboxes.get(token);
      if (others?.delete(id) && others.size === 0) this.#atInboxes.delete(token);
    }
  }

  #count(endpoint: Endpoint, sign: 1 | -1): void {
    const ofTenant = totalsFor(this.#totalsOfTenants, endpoint.tenant);
    const ofShard = totalsFor(this.#totalsOfShards, shardOfLane(endpoint));
    for (const totals of [this.#totals, ofTenant, ofShard]) {
      totals.endpoints += sign;
      totals.patterns += sign * endpoint.events.length;
      if (!endpoint.enabled) totals.disabled += sign;
      else if (endpoint.paused) totals.paused += sign;
      if (endpoint.notifier === null) continue;
      totals.notifiers += sign;
      if (!endpoint.enabled) totals.disabledNotifiers += sign;
    }
    if (ofTenant.endpoints === 0) this.#totalsOfTenants.delete(endpoint.tenant);
  }
}

function totalsFor<Key>(all: Map<Key, Totals>, key: Key): Totals {
  let totals = all.get(key);
  if (totals === undefined) {
    totals = newTotals();
    all.set(key, totals);
  }
  return totals;
}

const isOperational = ({ events, notifier }: Endpoint): boolean =>
  notifier !== null || events.some((pattern) => pattern.startsWith(RESERVED_TYPE_PREFIX));
