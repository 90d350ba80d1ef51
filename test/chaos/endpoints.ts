/** The endpoints of a run: one of every kind that the engine treats differently. */
import { setTimeout as delay } from 'node:timers/promises';
import { parsePublicId, type Uuid } from '../../src/domain/ids.ts';
import type { Receivers } from './receivers.ts';
import type { System } from './system.ts';

export interface EndpointPlan {
  readonly name: string;
  readonly tenant: string;
  /** The event types that it subscribes to. */
  readonly types: readonly string[];
  readonly maxInFlight: number;
  readonly timeoutMs: number;
  readonly fifo: boolean;
  readonly rate: { readonly perSecond: number; readonly burst: number } | null;
  readonly breaker: boolean;
  readonly settings: Readonly<Record<string, unknown>>;
}

export interface RegisteredEndpoint extends EndpointPlan {
  readonly id: string;
  readonly uuid: Uuid;
  readonly shard: number;
}

/** Enough attempts to survive every outage of a run. Only deliveries to `mortal` may die. */
const MANY_RETRIES = { schedule: [0, 0.2, 0.4, 0.6, 0.8, ...Array<number>(45).fill(1)] };
const BREAKER = {
  consecutive: 3,
  failure_rate: 1,
  min_requests: 1000,
  window_seconds: 60,
  cooldown_seconds: 0.4,
  max_cooldown_seconds: 1.2,
};

/** The tenant of endpoints that share event types. */
export const TENANT = 'chaos';

export function plan(name: string, part: Partial<EndpointPlan>): EndpointPlan {
  return {
    name,
    tenant: TENANT,
    types: [`to.${name}`],
    maxInFlight: 4,
    timeoutMs: 1500,
    fifo: false,
    rate: null,
    breaker: false,
    settings: {},
    ...part,
  };
}

const FAN_OUT = 'fan.out';
/** Names that begin with this have receivers that reject batches, or name some of their events as failed. */
export const PICKY = 'picky';
export const LATE = 'to.late';

export const plans: readonly EndpointPlan[] = [
  ...[1, 2, 3, 4].map((number) =>
    plan(`plain-${number}`, { types: [`to.plain-${number}`, FAN_OUT], timeoutMs: 1000 + 250 * number }),
  ),
  plan('mortal', {
    types: ['to.mortal', FAN_OUT],
    settings: { retry: { schedule: [0, 0.3, 0.3] } },
  }),
  // The tenant decides the partition of the accept log, so FIFO endpoints have their own.
  plan('fifo-1', { tenant: 'fifo-1', fifo: true }),
  plan('fifo-2', { tenant: 'fifo-2', fifo: true, breaker: true, settings: { breaker: BREAKER } }),
  // The rates roughly match the rates of their events, so that some delivery always waits in these lanes. A worker
  // without a lease would send it.
  plan('rated-1', { rate: { perSecond: 6, burst: 3 }, maxInFlight: 8 }),
  plan('rated-2', { rate: { perSecond: 5, burst: 4 }, maxInFlight: 8 }),
  plan('fused', {
    types: ['to.fused', FAN_OUT],
    breaker: true,
    settings: { breaker: BREAKER },
    maxInFlight: 3,
  }),
  plan('batched', {
    types: ['to.batched', FAN_OUT],
    maxInFlight: 2,
    settings: { batch: { max_events: 5, max_wait_ms: 300 } },
  }),
  plan(`${PICKY}-batched`, {
    types: ['to.picky', FAN_OUT],
    maxInFlight: 2,
    settings: { batch: { max_events: 8, max_wait_ms: 400 } },
  }),
  plan(`${PICKY}-fifo`, {
    tenant: 'picky-fifo',
    fifo: true,
    settings: { batch: { max_events: 8, max_wait_ms: 600 } },
  }),
  plan('batched-fifo', {
    tenant: 'batched-fifo',
    fifo: true,
    settings: { batch: { max_events: 5, max_wait_ms: 300 } },
  }),
  // Faster than the windows, so that nearly every event supersedes one.
  plan('debounced-last', {
    types: ['to.debounced', FAN_OUT],
    settings: { debounce: { key: 'data.key', window_ms: 700, max_wait_ms: 2000 } },
  }),
  plan('debounced-first', {
    types: ['to.debounced', FAN_OUT],
    settings: { debounce: { key: 'data.key', window_ms: 700, mode: 'first' } },
  }),
];

export const latePlan = (number: number): EndpointPlan => plan(`late-${number}`, { types: [LATE] });

/** Creates the endpoint. If the outcome is unknown, retries under another name, because the first one may exist. */
export async function register(
  system: System,
  receivers: Receivers,
  what: EndpointPlan,
): Promise<RegisteredEndpoint> {
  const deadline = Date.now() + 30_000;
  for (let turn = 1; ; turn += 1) {
    const name = turn === 1 ? what.name : `${what.name}.${turn}`;
    try {
      return await registerAs(system, receivers, { ...what, name });
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(100);
    }
  }
}

async function registerAs(
  system: System,
  receivers: Receivers,
  what: EndpointPlan,
): Promise<RegisteredEndpoint> {
  const { id } = await system.apiOnce<{ id: string }>('POST', '/v1/endpoints', {
    tenant: what.tenant,
    url: receivers.urlOf(what.name),
    events: what.types,
    timeout_ms: what.timeoutMs,
    max_in_flight: what.maxInFlight,
    ordering: what.fifo ? 'fifo' : 'none',
    rate_limit: what.rate && { per_second: what.rate.perSecond, burst: what.rate.burst },
    breaker: null,
    retry: MANY_RETRIES,
    ...what.settings,
  });
  const uuid = parsePublicId('ep', id)!;
  return { ...what, id, uuid, shard: Number.parseInt(uuid.slice(34), 16) };
}
