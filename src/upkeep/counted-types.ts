import { HOUR, OTHER_TYPES, startOfBucket } from '../domain/statistics.ts';
import type { TenantHour } from '../ports/statistics-store.ts';
import type { ReadableRow } from './read-journal.ts';

/** The tenant that stands for all tenants together. */
export const ALL_TENANTS = '';

/**
 * Decides which event types of a tenant are counted one by one in an hour: those that have totals already, then the first
 * new ones, up to a limit. All others are counted together as `other`.
 */
export class CountedTypes {
  readonly #maxTypes: number;
  readonly #types = new Map<string, Set<string>>();

  constructor(maxTypes: number) {
    this.#maxTypes = maxTypes;
  }

  /** The hours of these rows that `addHours` has not been called with. */
  findMissingHours(rows: readonly ReadableRow[]): TenantHour[] {
    const missing = new Map<string, TenantHour>();
    const add = (tenant: string, at: number): void => {
      const key = keyOf(tenant, at);
      if (!this.#types.has(key)) missing.set(key, { tenant, at });
    };
    for (const { at: rowAt, entry } of rows) {
      const at = startOfBucket(HOUR, rowAt);
      add(ALL_TENANTS, at);
      for (const [tenant] of entry.accepted ?? []) add(tenant, at);
      for (const [, tenant] of entry.dead ?? []) add(tenant, at);
      for (const [, tenant] of entry.attempts ?? []) add(tenant, at);
    }
    return [...missing.values()];
  }

  /** Adds hours with the types that have totals in them. */
  addHours(hours: readonly TenantHour[], counted: readonly (TenantHour & { readonly type: string })[]): void {
    for (const { tenant, at } of hours) this.#types.set(keyOf(tenant, at), new Set());
    for (const { tenant, at, type } of counted)
      if (type !== OTHER_TYPES) this.#types.get(keyOf(tenant, at))?.add(type);
  }

  /** The name under which the type is counted. A new type takes a free place. */
  nameOf(tenant: string, hour: number, type: string): string {
    const types = this.#types.get(keyOf(tenant, hour));
    if (types === undefined) return OTHER_TYPES;
    if (!types.has(type)) {
      if (types.size >= this.#maxTypes) return OTHER_TYPES;
      types.add(type);
    }
    return type;
  }
}

const keyOf = (tenant: string, hour: number): string => `${hour} ${tenant}`;
