/**
 * Counts the requests that an endpoint with `batch` or `debounce` would have made of the events of the last hour. Reads the
 * newest events first, and stops after a number of events or a time. The answer then says how far back it looked.
 */
import { maxEnvelopeBytes } from '../../domain/batch.ts';
import type { Clock } from '../../domain/clock.ts';
import { DebounceKeys } from '../../domain/debounce.ts';
import { matchesType } from '../../domain/event.ts';
import type { FilterNode } from '../../domain/filter.ts';
import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import { countRequests, type PastEvent, type ShapingSettings } from '../../domain/shaping-estimate.ts';
import type { Pool } from '../../postgres/database.ts';
import { type EventHead, readEventHeads } from '../../postgres/queries/search-events.ts';
import { readPayloads } from '../events/read-payloads.ts';
import { matchesEvent } from '../filters/match-event.ts';

export const ESTIMATE_PERIOD_MS = 3_600_000;
export const MAX_ESTIMATED_EVENTS = 100_000;
const BUDGET_MS = 1_500;
const EVENTS_PER_STATEMENT = 2_000;

/** Which events an endpoint gets. */
export interface Subscription {
  readonly tenant: string;
  readonly events: readonly string[];
  readonly channels: readonly string[];
  readonly filter: FilterNode | null;
  readonly payload: 'full' | 'thin';
}

export interface RequestEstimate {
  readonly since: Date;
  readonly until: Date;
  readonly events: number;
  readonly requests: number;
  readonly examined: number;
  readonly is_complete: boolean;
}

/** Call it in `takeTurn`, because it may read payloads. */
export async function estimateRequests(
  pool: Pool,
  clock: Clock,
  subscription: Subscription,
  settings: ShapingSettings,
  maxEvents = MAX_ESTIMATED_EVENTS,
): Promise<RequestEstimate> {
  const until = clock.now();
  const from = firstIdAt(until - ESTIMATE_PERIOD_MS);
  const endsAt = clock.monotonic() + BUDGET_MS;
  const found: PastEvent[] = [];
  let before: Uuid | null = null;
  let examined = 0;
  let isComplete = false;
  while (!isComplete && examined < maxEvents && clock.monotonic() < endsAt) {
    const limit = Math.min(EVENTS_PER_STATEMENT, maxEvents - examined);
    const heads = await readEventHeads(pool, subscription.tenant, { from, before }, limit);
    const wanted = heads.filter((head) => isAddressed(head, subscription));
    const reached = await collect(
      pool,
      wanted,
      subscription,
      settings,
      found,
      () => clock.monotonic() >= endsAt,
    );
    const read = reached === null ? heads.length : heads.findIndex(({ id }) => id === reached) + 1;
    examined += read;
    before = heads[read - 1]?.id ?? before;
    isComplete = reached === null && heads.length < limit;
  }
  const since = isComplete || before === null ? until - ESTIMATE_PERIOD_MS : timeOfId(before);
  return {
    since: new Date(since),
    until: new Date(until),
    events: found.length,
    requests: countRequests(found.reverse(), settings),
    examined,
    is_complete: isComplete,
  };
}

/** Events that name their endpoints are left out: test events, for instance. */
const isAddressed = ({ type, options }: EventHead, { events, channels }: Subscription): boolean =>
  options?.endpoint_ids === undefined &&
  events.some((pattern) => matchesType(pattern, type)) &&
  (channels.length === 0 || channels.some((channel) => options?.channels?.includes(channel) === true));

/**
 * Adds the events that the filter selects to `found`. Returns the event after which the time was over, or null. Reads
 * payloads only for a filter or a key.
 */
async function collect(
  pool: Pool,
  heads: readonly EventHead[],
  { filter, payload }: Subscription,
  { debounce }: ShapingSettings,
  found: PastEvent[],
  isTimeOver: () => boolean,
): Promise<Uuid | null> {
  const bytesOf = ({ type, idempotency_key, options, bytes }: EventHead): number =>
    maxEnvelopeBytes(
      { payload, apiVersion: null },
      {
        type,
        idempotencyKey: idempotency_key,
        schemaVersion: options?.schema_version ?? null,
        data: { length: bytes },
      },
    );
  if (filter === null && debounce === null) {
    for (const head of heads) found.push({ at: timeOfId(head.id), bytes: bytesOf(head), key: null });
    return null;
  }
  for await (const { data, ...event } of readPayloads(pool, heads)) {
    const isMatch = filter === null || matchesEvent(filter, event, data);
    if (isMatch)
      found.push({
        at: timeOfId(event.id),
        bytes: bytesOf({ ...event, bytes: data?.length ?? 0 }),
        key: debounce === null || data === null ? null : new DebounceKeys(data).keyOf(debounce),
      });
    if (isTimeOver()) return event.id;
  }
  return null;
}
