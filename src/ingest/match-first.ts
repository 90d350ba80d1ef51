import { setImmediate } from 'node:timers/promises';
import type { Endpoint } from '../domain/endpoint.ts';
import { isDuplicate, type PendingEvent } from './pending-event.ts';
import type { Subscriptions } from './subscriptions.ts';

/** A few milliseconds of filter steps. After them, the loop yields to sockets, timers and lease renewals. */
const MATCH_WORK_PER_TURN = 500_000;

/**
 * Matches the first events of the batch: up to `deliveriesPerCommit` deliveries, but at least one event. Yields to the
 * event loop between expensive events. If endpoints change meanwhile, `EventStore.append` reports it.
 */
export async function matchFirst(
  batch: readonly PendingEvent[],
  subscriptions: Pick<Subscriptions, 'match' | 'takeWork'>,
  deliveriesPerCommit: number,
): Promise<(readonly Endpoint[])[]> {
  const matched: (readonly Endpoint[])[] = [];
  let work = 0;
  let rows = 0;
  for (const item of batch) {
    const endpoints = isDuplicate(item) ? [] : subscriptions.match(item.event);
    rows += endpoints.length;
    if (rows > deliveriesPerCommit && matched.length > 0) break;
    matched.push(endpoints);
    work += subscriptions.takeWork();
    if (work < MATCH_WORK_PER_TURN) continue;
    work = 0;
    await setImmediate();
  }
  return matched;
}
