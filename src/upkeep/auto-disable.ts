/** Switches endpoints off that only waste everybody's time: most of their deliveries die, or they have been down for days. */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { disableEndpoint } from '../postgres/queries/endpoints.ts';
import { endpointsDying, endpointsFailing } from '../postgres/queries/upkeep.ts';

export interface AutoDisableOptions {
  readonly deadRate: number;
  readonly minDeliveries: number;
  readonly failingMs: number;
}

/** Returns those that were switched off. */
export async function autoDisable(
  pool: Pool,
  options: AutoDisableOptions,
): Promise<{ id: Uuid; reason: DisabledReason }[]> {
  const doomed: { id: Uuid; reason: DisabledReason }[] = [
    ...(await endpointsDying(pool, options)).map((id) => ({ id, reason: 'dead_letters' as const })),
    ...(await endpointsFailing(pool, options.failingMs)).map((id) => ({ id, reason: 'failing' as const })),
  ];
  const disabled: { id: Uuid; reason: DisabledReason }[] = [];
  for (const endpoint of doomed) {
    if (await inTransaction(pool, (client) => disableEndpoint(client, endpoint.id, endpoint.reason)))
      disabled.push(endpoint);
  }
  return disabled;
}
