/** Disables endpoints with too many dead letters, and endpoints without a success for days. */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDisabler } from '../ports/upkeep-store.ts';

export interface AutoDisableOptions {
  readonly deadRate: number;
  readonly minDeliveries: number;
  readonly failingMs: number;
}

export interface DisabledEndpoint {
  readonly id: Uuid;
  readonly reason: DisabledReason;
}

/** Returns the endpoints that were disabled. */
export async function autoDisable(
  store: EndpointDisabler,
  options: AutoDisableOptions,
): Promise<DisabledEndpoint[]> {
  const dying = await store.findDying(options);
  const failing = await store.findFailing(options.failingMs);
  const candidates: DisabledEndpoint[] = [
    ...dying.map((id) => ({ id, reason: 'dead_letters' as const })),
    ...failing.map((id) => ({ id, reason: 'failing' as const })),
  ];
  const disabled: DisabledEndpoint[] = [];
  for (const endpoint of candidates) {
    if (await store.disable(endpoint.id, endpoint.reason)) disabled.push(endpoint);
  }
  return disabled;
}
