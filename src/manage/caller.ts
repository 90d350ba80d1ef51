import type { AccessScope, KeyScope } from '../domain/access-scopes.ts';
import { idPrefixes, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { AuditTrail } from './audit-trail.ts';

/** Who makes a request, and which tenant's objects they may see and change. */
export interface Caller {
  /** Null: the admin key of the configuration. */
  readonly keyId: Uuid | null;
  readonly scope: KeyScope;
  /** Null: everything that `scope` allows. */
  readonly scopes: readonly AccessScope[] | null;
  /** The only tenant that the key may use. Null: all tenants. */
  readonly tenant: string | null;
  /** The first characters of the key, or the name of the user. Null: the admin key of the configuration. */
  readonly prefix: string | null;
  /** Who has signed in to the console: the subject of the identity provider. Absent: the caller has a key. */
  readonly user?: string;
}

/** Who asks for a change, and where the change is recorded. A Fastify request has both fields. */
export interface Actor {
  readonly caller: Caller;
  readonly audit: AuditTrail;
}

/** How the audit log names a caller: `key_…`, `user:…` or `admin`. */
export function nameOfCaller(caller: Caller): string {
  if (caller.user !== undefined) return `user:${caller.user}`;
  return caller.keyId === null ? 'admin' : publicId(idPrefixes.key, caller.keyId);
}

/** What a tenant sees instead of the name of a person or key of the operator. */
export const OPERATOR = 'operator';
const OPERATOR_MARK = `${OPERATOR}:`;

/**
 * How tasks, discarded deliveries and expunged events store the name of a caller. A caller without a tenant is marked, so
 * that `showRecordedName` can keep the name from tenants.
 */
export function recordedNameOf(caller: Caller): string {
  const name = nameOfCaller(caller);
  return caller.tenant === null ? `${OPERATOR_MARK}${name}` : name;
}

/** Returns a stored name as `reader` may see it. Tenants do not learn who works for the operator. */
export function showRecordedName(name: string, reader: Caller): string {
  const isMarked = name.startsWith(OPERATOR_MARK);
  if (reader.tenant !== null && (isMarked || name === 'admin')) return OPERATOR;
  return isMarked ? name.slice(OPERATOR_MARK.length) : name;
}

/**
 * The tenant to filter by, or null for all tenants. Throws `forbidden` if a tenant's key asks for another tenant.
 * `path` is the field that names the tenant.
 */
export function visibleTenant(caller: Caller, requested: string | undefined, path = 'tenant'): string | null {
  if (caller.tenant !== null && requested !== undefined && requested !== caller.tenant) {
    throw new Problem('forbidden', 'This key belongs to another tenant.', {
      errors: [{ path, message: 'is not the tenant of this key' }],
    });
  }
  return caller.tenant ?? requested ?? null;
}
