/** Disables endpoints with too many dead letters, and endpoints without a success for days. */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { DeadRateLimits, EndpointDisabler } from '../ports/upkeep-store.ts';

export interface AutoDisableOptions extends DeadRateLimits {
  readonly failingMs: number;
}

export interface DisabledEndpoint {
  readonly id: Uuid;
  readonly reason: Extract<DisabledReason, 'dead_letters' | 'failing'>;
}

/** Returns the endpoints that were disabled. */
export async function autoDisable(
  store: EndpointDisabler,
  options: AutoDisableOptions,
): Promise<DisabledEndpoint[]> {
  const tooManyDead = await store.findByDeadRate(options);
  const failing = await store.findFailing(options.failingMs);
  const candidates: DisabledEndpoint[] = [
    ...tooManyDead.map((id) => ({ id, reason: 'dead_letters' as const })),
    ...failing.map((id) => ({ id, reason: 'failing' as const })),
  ];
  const disabled: DisabledEndpoint[] = [];
  for (const endpoint of candidates) {
    if (await store.disable(endpoint.id, endpoint.reason, describeRule(endpoint.reason, options)))
      disabled.push(endpoint);
  }
  return disabled;
}

function describeRule(reason: 'dead_letters' | 'failing', options: AutoDisableOptions): string {
  if (reason === 'failing') return `Every attempt failed for at least ${inHours(options.failingMs)}.`;
  const share = `${Number((options.deadRate * 100).toFixed(2))} %`;
  return `More than ${share} of at least ${options.minDeliveries} deliveries within 24 h died, over at least ${inHours(options.minMs)}.`;
}

const inHours = (ms: number): string => `${Number((ms / 3_600_000).toFixed(4))} h`;
