/** FAN-4: checks of endpoints with batches and debounce. */
import type { RegisteredEndpoint } from './endpoints.ts';
import type { Arrival } from './receivers.ts';
import type { Postgres } from './system.ts';
import { type Complaint, type Facts, isSuccess, pairOf } from './verdict.ts';

/** "event endpoint" of every delivery that was debounced, and that of the one that was sent instead. */
export async function readDebounced(
  postgres: Postgres,
  endpoints: readonly RegisteredEndpoint[],
): Promise<Map<string, string>> {
  const names = new Map(endpoints.map(({ uuid, name }) => [uuid, name]));
  const rows = await postgres.query<{ event: string; by: string; endpoint_id: string }>(`
    select posthorn.public_id('evt', posthorn.event_of_delivery(l.delivery_id)) as event,
           posthorn.public_id('evt', posthorn.event_of_delivery(l.by_id)) as by, l.endpoint_id
      from posthorn.debounced l
      join posthorn.deliveries d on d.id = l.delivery_id and d.status = 'skipped' and d.reason = 'debounced'`);
  return new Map(
    rows.map(({ event, by, endpoint_id }) => {
      const name = names.get(endpoint_id) ?? endpoint_id;
      return [pairOf(event, name), pairOf(by, name)];
    }),
  );
}

/** The status of an event that the answer to its batch named as failed. */
const NAMED_AS_FAILED = 500;

/** Makes one arrival of each event that a batch carried. */
export const perEvent = (arrivals: readonly Arrival[]): Arrival[] =>
  arrivals.flatMap((arrival) =>
    arrival.events === null
      ? [arrival]
      : arrival.events.map((event) => ({
          ...arrival,
          event,
          status:
            arrival.status !== null && arrival.failed.includes(event) ? NAMED_AS_FAILED : arrival.status,
        })),
  );

/** An event of a batch dies by a rejection only if the receiver rejected it alone: it does not take others with it. */
export function wronglyRejected({ dead, endpoints, arrivals }: Facts): Complaint[] {
  const batched = new Set(endpoints.flatMap(({ name, settings }) => ('batch' in settings ? [name] : [])));
  const rejectedAlone = new Set(
    arrivals.flatMap(({ events, endpoint, status }) =>
      events?.length === 1 && status === REJECTED ? [pairOf(events[0]!, endpoint)] : [],
    ),
  );
  return [...dead].flatMap(([pair, reason]): Complaint[] => {
    const [event, endpoint] = pair.split(' ') as [string, string];
    if (!batched.has(endpoint) || reason !== 'rejected' || rejectedAlone.has(pair)) return [];
    return [{ about: `${event} died at ${endpoint}, which never rejected it alone`, event, endpoint }];
  });
}

const REJECTED = 422;

/** A batch carries the same events, in the same order, whenever it is sent. */
export function changedBatches(arrivals: readonly Arrival[]): Complaint[] {
  const batches = Map.groupBy(
    arrivals.filter(({ events }) => events !== null),
    ({ event, endpoint }) => pairOf(event, endpoint),
  );
  return [...batches.values()].flatMap((copies): Complaint[] => {
    const [first, ...others] = copies;
    const composition = first!.events!.join();
    const changed = others.find(({ events }) => events!.join() !== composition);
    if (changed === undefined) return [];
    const { event, endpoint, at } = changed;
    return [{ about: `${event} of ${endpoint} was sent with other events than before`, endpoint, at }];
  });
}

/** A delivery that was debounced points to one that was sent. It was not sent itself, unless a fault hid the result. */
export function wronglyDebounced(
  { debounced, dead }: Facts,
  endpoint: RegisteredEndpoint,
  byPair: ReadonlyMap<string, readonly Arrival[]>,
  isExcused: (arrival: Arrival) => boolean,
): Complaint[] {
  const { name } = endpoint;
  const complaints: Complaint[] = [];
  for (const [pair, next] of debounced) {
    // The one that superseded it may have been superseded itself.
    let by = next;
    for (let n = 0; n < debounced.size && debounced.has(by); n += 1) by = debounced.get(by)!;
    const [event, ofEndpoint] = pair.split(' ') as [string, string];
    if (ofEndpoint !== name) continue;
    const other = by.split(' ')[0]!;
    if (!dead.has(by) && !(byPair.get(by) ?? []).some(isSuccess))
      complaints.push({
        about: `LOST: ${event} was debounced by ${other}, which ${name} never got`,
        event,
        other,
        endpoint: name,
      });
    const sent = (byPair.get(pair) ?? []).find((arrival) => isSuccess(arrival) && !isExcused(arrival));
    if (sent !== undefined)
      complaints.push({
        about: `${name} got ${event} and answered 2xx, but it is recorded as debounced by ${other}`,
        event,
        other,
        endpoint: name,
        at: sent.at,
      });
  }
  return complaints;
}
