/** Which runs the lab makes, and at which scale. */
import type { BusyTrial } from './busy-endpoint.ts';
import { classModels, traffic } from './fault-models.ts';
import { breakers } from './policies.ts';
import type { Scale } from './trial.ts';

const perEndpointHour = traffic.deliveriesPerHour / 500;
const allEndpoints = {
  stable: classModels.stable.endpoints,
  intermittent: classModels.intermittent.endpoints,
  unreliable: classModels.unreliable.endpoints,
};

export interface Plan {
  /** For all policies: every endpoint, few deliveries of each. */
  readonly sample: Scale;
  /** To check that the results do not depend on the size of the sample: twice as many deliveries. */
  readonly larger: Scale;
  /** The plain loop: all deliveries. */
  readonly everything: Scale;
  /** For the breakers: few endpoints, with all their deliveries. */
  readonly fullRate: Scale;
  readonly busy: Pick<BusyTrial, 'eventsPerSecond' | 'minutes' | 'seed'>;
}

export function planLab(seed: number, isQuick: boolean): Plan {
  const days = isQuick ? 5 : 30;
  const sample = { seed, days, perEndpointHour: isQuick ? 0.1 : 0.4, endpoints: allEndpoints };
  return {
    sample,
    larger: { ...sample, perEndpointHour: sample.perEndpointHour * 2 },
    everything: { ...sample, perEndpointHour: isQuick ? 1 : perEndpointHour },
    fullRate: {
      seed,
      days: isQuick ? 0.2 : 2,
      perEndpointHour,
      endpoints: { stable: 10, intermittent: 20, unreliable: 20 },
    },
    busy: { eventsPerSecond: 5, minutes: isQuick ? 10 : 30, seed },
  };
}

/** Names of the breakers that the lab compares, and none. */
export const breakerNames = ['none', ...(Object.keys(breakers) as (keyof typeof breakers)[])] as const;
export type BreakerName = (typeof breakerNames)[number];

export const breakerOf = (name: BreakerName): BusyTrial['breaker'] =>
  name === 'none' ? null : breakers[name];

export const failingShares = [0.05, 0.2, 0.5, 'outage'] as const;
