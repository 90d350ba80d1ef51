/** Old data, and retention without the rest of Posthorn. */
import { systemClock } from '../../src/domain/clock.ts';
import { deliveryIdOf, newEventId, newId, type Uuid } from '../../src/domain/ids.ts';
import { DAY_MS, type RetentionDays } from '../../src/domain/retention.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { createPostgresRetentionStore } from '../../src/postgres/retention-store.ts';
import { type DropPartitionsOptions, PartitionDrops } from '../../src/upkeep/drop-partitions.ts';
import type { TestDatabase } from './database.ts';

export const FOR_EVER: RetentionDays = {
  events: 0,
  payloads: 0,
  deliveries: 0,
  attempts: 0,
  deadLetters: 0,
  audit: 0,
  statistics: 0,
};
/** Keeps all partitioned data for this many days, and everything else forever. */
export const keepDays = (days: number): RetentionDays => ({
  ...FOR_EVER,
  events: days,
  payloads: days,
  deliveries: days,
  attempts: days,
});

/** The start of the day (UTC) that many days ago. */
export const startOfDay = (daysAgo: number): number =>
  Math.floor(Date.now() / DAY_MS) * DAY_MS - daysAgo * DAY_MS;

/** Creates the partitions of one day in the past. */
export async function createDay(database: TestDatabase, dayMs: number): Promise<void> {
  for (const table of ['events', 'deliveries', 'attempts'])
    await database.query('select posthorn.create_partition($1, to_timestamp($2), to_timestamp($3))', [
      table,
      dayMs / 1000,
      (dayMs + DAY_MS) / 1000,
    ]);
}

export interface OldEvent {
  readonly id: Uuid;
  readonly deliveryId: Uuid;
}

export interface OldEventOptions {
  readonly status: 'waiting' | 'dead' | 'delivered' | 'skipped';
  readonly endpointId: Uuid;
  readonly tenant?: string;
  readonly atMs: number;
  readonly finishedAtMs?: number;
  readonly data?: string;
  /** The ordinal of the delivery. Beyond 65,535 only ids of version 8 have room for it. */
  readonly ordinal?: number;
}

/** Stores an event with one delivery and one attempt, as if it had been accepted at `atMs`. */
export async function storeOldEvent(database: TestDatabase, options: OldEventOptions): Promise<OldEvent> {
  const {
    status,
    endpointId,
    tenant = 'acme',
    atMs,
    finishedAtMs = atMs + 1000,
    data = '{"n":1}',
    ordinal = 0,
  } = options;
  const id = newEventId(atMs);
  const deliveryId = deliveryIdOf(id, ordinal);
  await database.query(
    `with event as (
       insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, $4, 'order.paid', convert_to($6, 'UTF8'), 1)
     ),
     waiting as (
       insert into posthorn.queue (id, endpoint_id, due_at, attempts, tenant, event_type)
       select $2, $3, now() + interval '1 day', 1, $4, 'order.paid' where $5 = 'waiting'
     ),
     dead as (
       insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, dead_at, tenant, event_type)
       select $2, $3, 'exhausted', 1, 0, to_timestamp($7::float8 / 1000), $4, 'order.paid' where $5 = 'dead'
     ),
     ended as (
       insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, finished_at, tenant, event_type)
       select $2, $3, $5, case $5 when 'skipped' then 'endpoint_disabled' end, 1, 0, to_timestamp($7::float8 / 1000), $4, 'order.paid'
        where $5 in ('delivered', 'skipped')
     )
     insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                    response_truncated, trigger, worker)
     values ($2, $8, 1, to_timestamp($7::float8 / 1000), 5, 500, 'retry', 'http://127.0.0.1/', '{}', false, 'auto', 'test')`,
    [id, deliveryId, endpointId, tenant, status, data, finishedAtMs, newId(atMs)],
  );
  return { id, deliveryId };
}

/** Runs one round of drops as if it were `nowMs`. */
export async function dropPartitions(
  database: { readonly url: string },
  options: Partial<DropPartitionsOptions> & { readonly days: RetentionDays; readonly nowMs?: number },
): Promise<string[]> {
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  const dropped: string[] = [];
  const { nowMs } = options;
  try {
    await new PartitionDrops({
      store: createPostgresRetentionStore(opened),
      clock: nowMs === undefined ? systemClock : { ...systemClock, now: () => nowMs },
      onDropped: (names) => void dropped.push(...names),
      ...options,
    }).run(() => false);
  } finally {
    await opened.close();
  }
  return dropped;
}
