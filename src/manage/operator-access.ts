/** The operator tenant: its events concern all tenants, so only admin keys may use it. */
import { invalidField, Problem } from '../domain/problem.ts';
import type { Caller } from './caller.ts';

/** Throws `invalid` if the tenant is the operator tenant: no key may be bound to it. */
export function refuseOperatorTenant(tenant: string | undefined, operatorTenant: string): void {
  if (tenant === operatorTenant)
    throw invalidField(
      'tenant',
      'is the operator tenant, which gets events about all tenants; only admin keys may use it',
    );
}

/** Throws `forbidden` if the caller is bound to the operator tenant. */
export function refuseOperatorCaller({ tenant }: Pick<Caller, 'tenant'>, operatorTenant: string): void {
  if (tenant === operatorTenant)
    throw new Problem(
      'forbidden',
      `This key is for the operator tenant "${operatorTenant}", which gets events about all tenants. Use an admin key.`,
    );
}

/** Checks that the caller may change `operator` of an endpoint. Throws `forbidden` or `invalid`. */
export function checkOperatorChange(
  caller: Caller,
  change: { readonly tenant: string; readonly before: boolean; readonly after: boolean },
  operatorTenant: string,
): void {
  if (change.before === change.after) return;
  if (caller.scope !== 'admin')
    throw new Problem('forbidden', 'Only an admin key may change `operator`.', {
      errors: [{ path: 'operator', message: 'may be changed by admin keys only' }],
    });
  if (change.after && change.tenant !== operatorTenant)
    throw invalidField(
      'operator',
      `may be true only for endpoints of the operator tenant "${operatorTenant}"`,
    );
}
