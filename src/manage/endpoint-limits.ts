/** Limits of a tenant's subscriptions. They apply to new endpoints and changes. Existing endpoints stay as they are. */
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { invalidField } from '../domain/problem.ts';
import type { Client } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { checkEndpointLimit, lockSubscriptions } from '../postgres/queries/endpoint-limits.ts';
import { ensureTenant } from '../postgres/queries/tenants.ts';

export interface EndpointLimits {
  /** How many endpoints a tenant may have, unless it has a limit of its own. */
  readonly perTenant: number;
  /** How many patterns the endpoints of a tenant may have together, beyond one for each: every process keeps all of them. */
  readonly patternsPerTenant: number;
  /** Whether a tenant may not have two endpoints with the same URL that get some of the same events. */
  readonly unique: boolean;
}

type Subscription = Pick<EndpointConfig, 'events'>;

const countPatterns = ({ events }: Subscription): number => events?.length ?? 1;

/**
 * Creates the tenant if it is new, and locks what it subscribes to until the transaction ends. Throws `invalid` if it has as
 * many endpoints as it may have, `conflict` while it is being expunged. Call it before the endpoint is created.
 */
export async function reserveEndpoint(client: Client, tenant: string, defaultMax: number): Promise<void> {
  await ensureTenant(client, tenant);
  await lockSubscriptions(client, tenant);
  const { max, isReached } = await checkEndpointLimit(client, tenant, defaultMax);
  if (!isReached) return;
  const rule = `may have at most ${max} endpoints: delete some, or raise "max_endpoints" of the tenant`;
  throw invalidField('tenant', rule);
}

/**
 * Throws `invalid` if the tenant would have more patterns than it may have. Call it with the tenant locked by
 * `lockSubscriptions`. `before` null: the endpoint is new.
 */
export async function refuseManyPatterns(
  endpoints: EndpointCache,
  tenant: string,
  change: { readonly before: Subscription | null; readonly after: Subscription },
  max: number,
): Promise<void> {
  const { before, after } = change;
  // One pattern of a new endpoint is free.
  const added = countPatterns(after) - (before === null ? 1 : countPatterns(before));
  if (added <= 0) return;
  const countAll = (): number => {
    const totals = endpoints.totalsOf(tenant);
    return totals.patterns - totals.endpoints + added;
  };
  // The counts in this process are at most a moment old. Near the limit, read the endpoints that were committed since.
  if (countAll() <= max / 2) return;
  await endpoints.refresh();
  if (countAll() <= max) return;
  throw invalidField(
    'events',
    `adds ${added} patterns: all endpoints of the tenant may have at most ${max} together, beyond one for each. Use prefixes such as "order.*", or ask the operator to raise POSTHORN_MAX_PATTERNS_PER_TENANT`,
  );
}
