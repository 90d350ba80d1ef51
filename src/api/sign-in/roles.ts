/** What the claims of a person allow. */
import type { KeyScope } from '../../domain/access-scopes.ts';
import { isTenantId } from '../../domain/event.ts';

export interface RoleRules {
  readonly rolesClaim: string;
  /** Null: people have no tenant. */
  readonly tenantClaim: string | null;
  readonly adminRoles: readonly string[];
  readonly tenantRoles: readonly string[];
  readonly readRoles: readonly string[];
  /** Nobody may be limited to this tenant. */
  readonly operatorTenant: string;
}

export interface Role {
  readonly scope: KeyScope;
  readonly tenant: string | null;
}

export type Claims = Readonly<Record<string, unknown>>;

/** Returns the widest role that the claims allow, or null if they allow none. */
export function roleOfClaims(claims: Claims, rules: RoleRules): Role | null {
  const roles = textsOf(claims[rules.rolesClaim]);
  const has = (wanted: readonly string[]): boolean => wanted.some((role) => roles.includes(role));
  if (has(rules.adminRoles)) return { scope: 'admin', tenant: null };
  if (rules.tenantClaim === null) return has(rules.readRoles) ? { scope: 'read', tenant: null } : null;
  const tenant = claims[rules.tenantClaim];
  // Without a valid tenant nobody gets a role: the alternative would be all tenants.
  if (typeof tenant !== 'string' || !isTenantId(tenant) || tenant === rules.operatorTenant) return null;
  if (has(rules.tenantRoles)) return { scope: 'tenant', tenant };
  return has(rules.readRoles) ? { scope: 'read', tenant } : null;
}

const textsOf = (value: unknown): string[] =>
  [value].flat().filter((item): item is string => typeof item === 'string');
