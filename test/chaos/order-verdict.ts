/** DSP-3, FAN-4: the order in which FIFO endpoints get their events. */
import type { AcceptedEvent } from './producer.ts';
import type { Arrival } from './receivers.ts';
import { perEvent } from './shaping-verdict.ts';
import { type Complaint, type Facts, isSuccess, pairOf } from './verdict.ts';

interface Done {
  readonly event: AcceptedEvent;
  readonly at: number;
}

/**
 * FIFO deliveries arrive one after another, in the order of acceptance. Those of a batch arrive together, so one that the
 * receiver names as failed is done after the next one. No delivery of a later request passes it.
 */
export function outOfOrder(
  { accepted, dead }: Pick<Facts, 'accepted' | 'dead'>,
  endpoint: string,
  arrivals: readonly Arrival[],
): Complaint[] {
  const byEvent = Map.groupBy(perEvent(arrivals), ({ event }) => event);
  const inOrder = accepted
    .filter(({ endpoints, order }) => order !== null && endpoints.includes(endpoint))
    .toSorted((a, b) => a.order! - b.order!);
  const complaints = unsortedBatches(inOrder, endpoint, arrivals);
  /** The last one that was done, of earlier requests and of this one. */
  let before: Done | null = null;
  let ofRequest: Done | null = null;
  let request: Arrival['events'] = null;
  for (const event of inOrder) {
    const copies = byEvent.get(event.id) ?? [];
    const first = copies[0];
    if (first === undefined) continue;
    if (first.events === null || first.events !== request) {
      before = laterOf(before, ofRequest);
      ofRequest = null;
      request = first.events;
    }
    if (before !== null && first.at < before.at)
      complaints.push({
        about: `${endpoint} got number ${event.order} (${event.id}) ${before.at - first.at} ms before number ${before.event.order} (${before.event.id}) was done`,
        event: event.id,
        other: before.event.id,
        endpoint,
        at: first.at,
      });
    const done = copies.find(isSuccess);
    if (done !== undefined && !dead.has(pairOf(event.id, endpoint)))
      ofRequest = laterOf(ofRequest, { event, at: done.at });
  }
  return complaints;
}

const laterOf = (a: Done | null, b: Done | null): Done | null =>
  a === null || (b !== null && b.at > a.at) ? b : a;

/** Batches whose events are not in the order of acceptance. */
function unsortedBatches(
  accepted: readonly AcceptedEvent[],
  endpoint: string,
  arrivals: readonly Arrival[],
): Complaint[] {
  const orders = new Map(accepted.map(({ id, order }) => [id, order!]));
  return arrivals.flatMap(({ events, event, at }): Complaint[] => {
    const numbers = (events ?? []).flatMap((id) => orders.get(id) ?? []);
    const isSorted = numbers.every((number, index) => index === 0 || numbers[index - 1]! < number);
    return isSorted ? [] : [{ about: `${event} of ${endpoint} has its events out of order`, endpoint, at }];
  });
}
