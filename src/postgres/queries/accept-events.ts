import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { QueryConfig } from 'pg';
import type { UnmatchedReason } from '../../domain/event.ts';
import type { Uuid } from '../../domain/ids.ts';
import {
  type AppendOptions,
  type AppendResult,
  countDeliveries,
  type EventRecord,
  type IdempotencyKey,
  idempotencyKeyName,
  type KeyHolder,
} from '../../ports/event-store.ts';
import type { Pool } from '../database.ts';
import { uuidArray } from '../uuid-array.ts';
import { lostPartition, partitionValues } from './accept-from-kafka.ts';
import {
  CHECKS,
  guardedStatement,
  type Origin,
  plainStatement,
  singleStatement,
  type VersionCheck,
} from './accept-statements.ts';
import { journalOfAccepted } from './stats-journal.ts';

function originOf({ outboxSeqs, partition, fromParkedRecords = false }: AppendOptions): Origin {
  if (partition !== undefined) return 'partition';
  if (outboxSeqs === null) return 'requests';
  return fromParkedRecords ? 'parked' : 'outbox';
}

/**
 * Writes the events in one commit. The first statement requires that no endpoint at all has changed since `endpointVersion`. If it
 * writes nothing, the second one requires this only of the endpoints of these tenants.
 */
export async function acceptEvents(
  pool: Pool,
  events: readonly EventRecord[],
  options: AppendOptions,
): Promise<AppendResult> {
  const isSliced = events.some((event) => event.unwritten !== undefined);
  const toStatement = prepare(events, options, isSliced ? await sliceValues(events) : null);
  for (const check of CHECKS) {
    const { rows } = await pool.query<AcceptAnswer>(toStatement(check));
    const answer = rows[0]!;
    if (Number(answer.version) !== options.endpointVersion) continue;
    if (answer.is_owned === false) throw lostPartition(options.partition!);
    return { stale: false, written: answer.written === undefined ? 'all' : new Set(answer.written) };
  }
  return { stale: true };
}

interface AcceptAnswer {
  readonly version: string;
  /** Only a guarded statement returns it. Absent: all were written. */
  readonly written?: Uuid[];
  /** Only a statement for a Kafka partition returns it. */
  readonly is_owned?: boolean;
}

/** Returns a function that makes the query with this check. `slices`: parameters for unwritten deliveries. Null: there are none. */
function prepare(
  events: readonly EventRecord[],
  options: AppendOptions,
  slices: readonly unknown[] | null,
): (check: VersionCheck) => QueryConfig {
  const { outboxSeqs, partition } = options;
  const origin = originOf(options);
  const isGuarded =
    slices !== null ||
    origin !== 'requests' ||
    options.mayBeStored ||
    events.some((event) => event.idempotencyKey !== null);
  const skips = events.some(({ skipped }) => skipped.length > 0);
  if (events.length === 1 && !isGuarded && !skips) {
    const values = [options.endpointVersion, ...singleValues(events[0]!), journalOfAccepted(events)];
    return (check) => ({ ...singleStatement(check), values });
  }
  const skippedValues = skips ? toSkippedValues(events) : [];
  const values = [
    options.endpointVersion,
    ...eventValues(events),
    ...deliveryValues(events),
    ...payloadValues(events),
  ];
  if (!isGuarded) {
    values.push(journalOfAccepted(events), ...skippedValues);
    return (check) => ({ ...plainStatement(check, skips), values });
  }
  values.push(
    events.map((event) => event.idempotencyKey),
    events.map((event) => event.fingerprint),
    keyTimes(options),
    journalOfAccepted(events),
    events.length,
    ...(outboxSeqs === null ? [] : [literal(outboxSeqs)]),
    ...(partition === undefined ? [] : partitionValues(partition)),
    ...(slices ?? skippedValues),
  );
  const variant = slices !== null ? 'sliced' : skips ? 'skipping' : 'usual';
  return (check) => ({ ...guardedStatement(check, origin, variant), values });
}

/** Parameter $17 of the guarded statements, in seconds. Null: the database's time. */
function keyTimes({ idempotencyTtlMs, now, mayExpireKeys = true }: AppendOptions): (number | null)[] {
  const nowSeconds = now === undefined ? null : now / 1000;
  return [idempotencyTtlMs / 1000, nowSeconds, mayExpireKeys ? nowSeconds : 0];
}

/** Formats a PostgreSQL array of values that need no quoting: ids, numbers, validated names. */
const literal = (values: readonly (string | number | boolean)[]): string => `{${values.join(',')}}`;

function eventValues(events: readonly EventRecord[]): unknown[] {
  const starts: number[] = [];
  let start = 1;
  for (const event of events) {
    starts.push(start);
    start += event.data.length;
  }
  starts.push(start);
  const { tenants, types, numbers } = numberSubjects(events);
  return [
    uuidArray(events.map((event) => event.id)),
    // Quoted, because NULL is a valid name.
    literal(tenants.map((tenant) => `"${tenant}"`)),
    literal(types.map((type) => `"${type}"`)),
    literal(starts),
    literal(numbers),
    literal(events.map(countDeliveries)),
  ];
}

/** Each pair of tenant and type once, and for each event the number of its pair, which starts at 1. */
function numberSubjects(events: readonly EventRecord[]) {
  const known = new Map<string, number>();
  const tenants: string[] = [];
  const types: string[] = [];
  const numbers = events.map(({ tenant, type }) => {
    const key = `${tenant} ${type}`;
    const number = known.get(key) ?? tenants.length + 1;
    if (number > tenants.length) {
      known.set(key, number);
      tenants.push(tenant);
      types.push(type);
    }
    return number;
  });
  return { tenants, types, numbers };
}

function singleValues(event: EventRecord): unknown[] {
  const { id, tenant, type, data } = event;
  const [ids, , ...deliveries] = deliveryValues([event]);
  return [id, tenant, type, data, countDeliveries(event), optionsText(event), ids, ...deliveries];
}

function deliveryValues(events: readonly EventRecord[]): unknown[] {
  const ids: string[] = [];
  const indexes: number[] = [];
  const endpoints: string[] = [];
  const due: (number | string)[] = [];
  const fifo: boolean[] = [];
  for (const [index, event] of events.entries()) {
    for (const delivery of event.deliveries) {
      ids.push(delivery.id);
      indexes.push(index + 1);
      endpoints.push(delivery.endpointId);
      due.push(delivery.dueAt === null ? 'null' : delivery.dueAt / 1000);
      fifo.push(delivery.fifo);
    }
  }
  return [uuidArray(ids), literal(indexes), uuidArray(endpoints), literal(due), literal(fifo)];
}

/** Formatting 100,000 ids takes 40 ms, so other work gets its turn after this many. */
const IDS_PER_TURN = 2_000;

async function sliceValues(events: readonly EventRecord[]): Promise<unknown[]> {
  const slices = events.flatMap(({ deliveries, unwritten }, index) => {
    let firstOrdinal = deliveries.length;
    return (unwritten?.slices ?? []).map((slice) => {
      const first = firstOrdinal;
      firstOrdinal += slice.endpointIds.length;
      return { ...slice, n: index + 1, firstOrdinal: first, deliverAt: unwritten!.deliverAt };
    });
  });
  const endpointIds: string[] = [];
  let ids = 0;
  for (const slice of slices) {
    endpointIds.push(`"${literal(slice.endpointIds)}"`);
    ids += slice.endpointIds.length;
    if (ids < IDS_PER_TURN) continue;
    ids = 0;
    await yieldToEventLoop();
  }
  return [
    literal(slices.map(({ n }) => n)),
    literal(slices.map(({ firstOrdinal }) => firstOrdinal)),
    literal(endpointIds),
    literal(slices.map(({ hasFifo }) => hasFifo)),
    literal(slices.map(({ wasDisabled }) => wasDisabled)),
    literal(slices.map(({ deliverAt }) => (deliverAt === null ? 'null' : deliverAt / 1000))),
  ];
}

function toSkippedValues(events: readonly EventRecord[]): unknown[] {
  const rows = events.flatMap(({ skipped }, index) =>
    skipped.map(({ id, endpointId }) => ({ id, n: index + 1, endpointId })),
  );
  return [
    literal(rows.map(({ id }) => id)),
    literal(rows.map(({ n }) => n)),
    literal(rows.map(({ endpointId }) => endpointId)),
  ];
}

function payloadValues(events: readonly EventRecord[]): unknown[] {
  // An array, not one JSON object: PostgreSQL would parse the whole object once for each event.
  const hasOptions = events.some((event) => event.options !== null);
  const options = hasOptions ? events.map(optionsText) : [];
  return [Buffer.concat(events.map((event) => event.data)), options];
}

const optionsText = ({ options }: EventRecord): string | null =>
  options === null ? null : JSON.stringify(options);

/** The database's clock. */
export async function databaseNow(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  );
  return rows[0]!.now;
}

// A separate statement, because the statement that lost the key cannot see the winning row in its snapshot.
const KEY_HOLDERS = {
  name: 'idempotency_key_holders',
  text: `
    select k.tenant, k.key, k.event_id, k.fingerprint, coalesce(e.deliveries, 0) as deliveries, e.type,
           e.options ->> 'unmatched_reason' as unmatched_reason
      from unnest($1::text[], $2::text[]) as wanted(tenant, key)
      join posthorn.idempotency_keys k using (tenant, key)
      left join posthorn.events e on e.id = k.event_id`,
};

export async function findKeyHolders(
  pool: Pool,
  wanted: readonly IdempotencyKey[],
): Promise<Map<string, KeyHolder>> {
  const { rows } = await pool.query<{
    tenant: string;
    key: string;
    event_id: Uuid;
    fingerprint: Buffer;
    deliveries: number;
    type: string;
    unmatched_reason: UnmatchedReason | null;
  }>({ ...KEY_HOLDERS, values: [wanted.map(({ tenant }) => tenant), wanted.map(({ key }) => key)] });
  return new Map(
    rows.map((row) => [
      idempotencyKeyName(row.tenant, row.key),
      {
        eventId: row.event_id,
        fingerprint: row.fingerprint,
        deliveries: row.deliveries,
        unmatchedReason: row.unmatched_reason,
        type: row.type,
      },
    ]),
  );
}
