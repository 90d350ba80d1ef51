/** Lanes and deliveries for tests of the dispatch stage. */

import { Lane, type LaneItem } from '../../src/dispatch/lane.ts';
import type { LaneMemory } from '../../src/dispatch/lane-budget.ts';
import { CLOSED_BREAKER } from '../../src/domain/breaker.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import { type EndpointConfig, resolveEndpoint } from '../../src/domain/endpoint-config.ts';
import type { Uuid } from '../../src/domain/ids.ts';

export const ENDPOINT_ID = '0190aaaa-0000-7000-8000-000000000001';
export const NOW = 1_800_000_000_000;

export function endpointOf(config: EndpointConfig): Endpoint {
  const record = {
    id: ENDPOINT_ID,
    tenant: 't',
    url: 'https://a.test/',
    config,
    enabled: true,
    disabledReason: null,
  };
  return resolveEndpoint({ ...record, paused: false, deleted: false }, []);
}

export const HEALTHY = { breaker: CLOSED_BREAKER, failingSince: null, blocked: false };
export const newLane = (config: EndpointConfig = {}, memory?: LaneMemory) =>
  new Lane(endpointOf(config), HEALTHY, null, memory);

export const idOf = (n: number): Uuid => `0190bbbb-0000-7000-8000-${String(n).padStart(12, '0')}`;

export function newItem(n: number, part: Partial<LaneItem['delivery']> = {}, notBefore = 0): LaneItem {
  return {
    delivery: {
      id: idOf(n),
      endpointId: ENDPOINT_ID,
      seq: n,
      attempts: 0,
      attemptsBeforeReplay: 0,
      dueAt: null,
      agesFrom: NOW,
      trigger: 'auto',
      lastErrorClass: null,
      ...part,
    },
    event: null,
    state: 'queued',
    isProbe: false,
    notBefore,
    crashes: 0,
  };
}

/** Takes the next delivery, as the scheduler does when it is the turn of this lane. */
export function takeNext(lane: Lane, now: number): LaneItem | null {
  if (lane.readyAt(now, now) > now) return null;
  const { fresh } = lane.readyKinds(now);
  return lane.take(fresh ? 'fresh' : 'retry', now, now);
}
