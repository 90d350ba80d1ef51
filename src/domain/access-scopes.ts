/** What a key may do: `scope` sets the outer limit, `scopes` narrows it. */

export type KeyScope = 'admin' | 'tenant' | 'read';

export const accessScopes = [
  'events:publish',
  'events:read',
  'deliveries:read',
  'deliveries:replay',
  'endpoints:read',
  'endpoints:write',
  'secrets:read',
  'catalogue:read',
  'catalogue:write',
] as const;
export type AccessScope = (typeof accessScopes)[number];

const READ: readonly AccessScope[] = ['events:read', 'deliveries:read', 'endpoints:read', 'catalogue:read'];

/** What `scopes` of a key may contain. */
export const scopesWithin: Readonly<Record<KeyScope, readonly AccessScope[]>> = {
  admin: accessScopes,
  // The catalogue belongs to all tenants, so only admin keys may change it.
  tenant: accessScopes.filter((scope) => scope !== 'catalogue:write'),
  read: READ,
};

export interface Permissions {
  readonly scope: KeyScope;
  /** Null: everything that `scope` allows. */
  readonly scopes: readonly AccessScope[] | null;
}

export function hasScope({ scope, scopes }: Permissions, needed: AccessScope): boolean {
  return (scopes ?? scopesWithin[scope]).includes(needed);
}

/** Whether a caller may see signing secrets and the values of headers that an endpoint sends. */
export const mayReadSecrets = (caller: Permissions): boolean => hasScope(caller, 'secrets:read');
