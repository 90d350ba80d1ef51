import type { Endpoint } from '../domain/endpoint.ts';
import { RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';

/**
 * Which endpoints want this event? Answered from memory: exact types and prefixes are looked up, not tried one by
 * one, and the answer for a (tenant, type) is remembered until an endpoint changes.
 */
export interface MatchQuery {
  readonly tenant: string;
  readonly type: string;
  readonly channels: readonly string[];
  readonly endpointIds: readonly Uuid[] | null;
}

const MAX_REMEMBERED = 20_000;

export class Subscriptions {
  readonly #endpoints = new Map<Uuid, Endpoint>();
  readonly #byTenant = new Map<string, Map<Uuid, Endpoint>>();
  #remembered = new Map<string, readonly Endpoint[]>();

  /** Only endpoints that take new deliveries are kept: a paused one does, a disabled or deleted one does not. */
  update(changed: Iterable<Endpoint>): void {
    for (const endpoint of changed) {
      const takesNew = endpoint.enabled && !endpoint.deleted;
      let tenant = this.#byTenant.get(endpoint.tenant);
      if (takesNew) {
        this.#endpoints.set(endpoint.id, endpoint);
        if (tenant === undefined) {
          tenant = new Map();
          this.#byTenant.set(endpoint.tenant, tenant);
        }
        tenant.set(endpoint.id, endpoint);
      } else {
        this.#endpoints.delete(endpoint.id);
        tenant?.delete(endpoint.id);
        if (tenant?.size === 0) this.#byTenant.delete(endpoint.tenant);
      }
    }
    this.#remembered = new Map();
  }

  /** True if the tenant has this endpoint and it takes new deliveries. */
  has(tenant: string, id: Uuid): boolean {
    return this.#endpoints.get(id)?.tenant === tenant;
  }

  match(event: MatchQuery): readonly Endpoint[] {
    if (event.endpointIds !== null) {
      return [...new Set(event.endpointIds)].flatMap((id) => {
        const endpoint = this.#endpoints.get(id);
        return endpoint !== undefined && endpoint.tenant === event.tenant ? [endpoint] : [];
      });
    }
    const byType = this.#matchType(event.tenant, event.type);
    if (!byType.some((endpoint) => endpoint.channels.length > 0)) return byType;
    return byType.filter(
      ({ channels }) => channels.length === 0 || channels.some((channel) => event.channels.includes(channel)),
    );
  }

  #matchType(tenant: string, type: string): readonly Endpoint[] {
    const key = `${tenant}\n${type}`;
    let matched = this.#remembered.get(key);
    if (matched === undefined) {
      matched = [...(this.#byTenant.get(tenant)?.values() ?? [])].filter((endpoint) =>
        endpoint.events.some((pattern) => matchesType(pattern, type)),
      );
      // A producer that makes up a type per event must not fill the memory.
      if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
      this.#remembered.set(key, matched);
    }
    return matched;
  }
}

export function matchesType(pattern: string, type: string): boolean {
  if (pattern === '*') return !type.startsWith(RESERVED_TYPE_PREFIX);
  if (pattern.endsWith('.*')) return type.startsWith(pattern.slice(0, -1));
  return pattern === type;
}
