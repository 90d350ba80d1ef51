import type { AdaptiveRecord } from '../../domain/adaptive-limits.ts';
import { type Circuit, CLOSED_BREAKER } from '../../domain/breaker.ts';
import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import type { Trigger } from '../../domain/outcome.ts';
import type { LaneRequest, LaneState, LoadedDelivery, LoadedLane } from '../../ports/delivery-queue.ts';
import type { Pool } from '../database.ts';

export const QUEUE_COLUMNS = `
  id, endpoint_id, seq, attempts, attempts_before_replay, careful_starts, trigger, last_error_class, batch_id,
  extract(epoch from due_at)::float8 * 1000 as due_at, extract(epoch from ages_from)::float8 * 1000 as ages_from,
  extract(epoch from started_at)::float8 * 1000 as started_at`;

// Many lanes in one round trip, each with its own short range of an index: no read walks through another endpoint's
// million rows. One statement for both kinds, so that a read takes one connection. A FIFO lane stops at the first event of
// its tenant whose large fan-out is not written yet. To search the slices for the endpoint would slow down the reads of all
// tenants while one tenant has many unwritten slices.
const LOAD_LANES = {
  name: 'load_lanes',
  text: `
    with barrier as materialized (
      select e.id as endpoint_id,
             (select s.seq from posthorn.fan_out_slices s where s.has_fifo and s.tenant = e.tenant order by s.seq limit 1) as seq
        from posthorn.endpoints e
       where e.id = any ($1::uuid[]) and exists (select from posthorn.fan_out_slices where has_fifo)
    )
    select true as fresh, q.* from unnest($1::uuid[], $2::bigint[], $3::int[]) as wanted(endpoint_id, after, max)
      left join barrier using (endpoint_id)
     cross join lateral (
           select ${QUEUE_COLUMNS} from posthorn.queue
            where endpoint_id = wanted.endpoint_id and (due_at is null or fifo) and seq > wanted.after
              and (barrier.seq is null or not fifo or seq <= barrier.seq)
            order by seq limit wanted.max) q
    union all
    select false, q.* from unnest($4::uuid[], $5::float8[], $6::int[]) as wanted(endpoint_id, due_from, max)
     cross join lateral (
           select ${QUEUE_COLUMNS} from posthorn.queue
            where endpoint_id = wanted.endpoint_id and due_at is not null and not fifo
              and due_at >= to_timestamp(wanted.due_from)
            order by queue.due_at limit wanted.max) q`,
};

// The partial index holds requested probes only, which are few.
const LOAD_PROBES = {
  name: 'load_probes',
  text: `select ${QUEUE_COLUMNS} from posthorn.queue where probe_after_attempts = attempts order by endpoint_id limit 10000`,
};

export interface QueueRow {
  id: Uuid;
  endpoint_id: Uuid;
  seq: string;
  attempts: number;
  attempts_before_replay: number;
  careful_starts: number;
  trigger: Trigger;
  last_error_class: string | null;
  due_at: number | null;
  ages_from: number | null;
  started_at: number | null;
  batch_id: Uuid | null;
}

export async function loadLanes(
  pool: Pool,
  requests: readonly LaneRequest[],
): Promise<Map<Uuid, LoadedLane>> {
  const lanes = new Map<Uuid, { fresh: LoadedDelivery[]; due: LoadedDelivery[] }>(
    requests.map(({ endpointId }) => [endpointId, { fresh: [], due: [] }]),
  );
  const fresh = requests.filter((request) => request.freshAfter !== null);
  const due = requests.filter((request) => request.dueFrom !== null);
  const { rows } = await pool.query<QueueRow & { fresh: boolean }>({
    ...LOAD_LANES,
    values: [
      ids(fresh),
      literal(fresh.map((request) => request.freshAfter!)),
      limits(fresh),
      ids(due),
      literal(due.map((request) => request.dueFrom! / 1000)),
      limits(due),
    ],
  });
  for (const row of rows) lanes.get(row.endpoint_id)![row.fresh ? 'fresh' : 'due'].push(toLoaded(row));
  return lanes;
}

const literal = (values: readonly (string | number)[]): string => `{${values.join(',')}}`;
const ids = (requests: readonly LaneRequest[]): string =>
  literal(requests.map((request) => request.endpointId));
const limits = (requests: readonly LaneRequest[]): string =>
  literal(requests.map((request) => request.limit));

export function toLoaded(row: QueueRow): LoadedDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    seq: Number(row.seq),
    attempts: row.attempts,
    attemptsBeforeReplay: row.attempts_before_replay,
    dueAt: row.due_at,
    agesFrom: row.ages_from ?? timeOfId(row.id),
    trigger: row.trigger,
    lastErrorClass: row.last_error_class,
    startedAt: row.started_at,
    carefulStarts: row.careful_starts,
    batchId: row.batch_id,
  };
}

/** One range of the primary key: the cost depends on the deliveries that were accepted lately, not on the endpoints. */
export async function listRecent(pool: Pool, since: number): Promise<Uuid[]> {
  const { rows } = await pool.query<{ endpoint_id: Uuid }>({
    name: 'list_recent',
    text: 'select distinct endpoint_id from posthorn.queue where id >= $1::uuid',
    values: [firstIdAt(since)],
  });
  return rows.map((row) => row.endpoint_id);
}

export async function loadProbes(pool: Pool): Promise<LoadedDelivery[]> {
  const { rows } = await pool.query<QueueRow>(LOAD_PROBES);
  return rows.map(toLoaded);
}

/** Endpoints that are missing from the answer have never failed. */
export async function loadLaneStates(
  pool: Pool,
  endpointIds: readonly Uuid[],
): Promise<Map<Uuid, LaneState>> {
  const { rows } = await pool.query<{
    id: Uuid;
    circuit: Circuit | null;
    consecutive_failures: number;
    opened_at: number | null;
    cooldown_ms: string;
    next_probe_at: number | null;
    failing_since: number | null;
    hold_until: number | null;
    adaptive: AdaptiveRecord | null;
    blocked: boolean;
    is_new: boolean | null;
    shard: number | null;
  }>({
    name: 'load_lane_states',
    text: `
      select e.id, h.circuit, h.consecutive_failures, h.cooldown_ms, h.adaptive,
             extract(epoch from h.opened_at)::float8 * 1000 as opened_at,
             extract(epoch from h.next_probe_at)::float8 * 1000 as next_probe_at,
             extract(epoch from h.failing_since)::float8 * 1000 as failing_since,
             extract(epoch from h.hold_until)::float8 * 1000 as hold_until,
             exists (select from posthorn.dead_letters d
                      where d.endpoint_id = e.id and d.blocks_lane and not d.replaying) as blocked,
             s.shard, made.created_at > s.taken_at and made.enabled_since is null and made.placement = 0 as is_new
        from unnest($1::uuid[]) as e(id)
        left join posthorn.endpoint_health h on h.endpoint_id = e.id
        left join posthorn.endpoints made on made.id = e.id
        left join posthorn.shards s on s.shard = coalesce(made.shard, get_byte(uuid_send(made.id), 15))`,
    values: [literal(endpointIds)],
  });
  return new Map(
    rows.map((row) => [
      row.id,
      {
        blocked: row.blocked,
        isNew: row.is_new ?? false,
        shard: row.shard,
        failingSince: row.failing_since,
        holdUntil: row.hold_until,
        adaptive: row.adaptive,
        breaker:
          row.circuit === null
            ? CLOSED_BREAKER
            : {
                circuit: row.circuit,
                consecutiveFailures: row.consecutive_failures,
                openedAt: row.opened_at,
                cooldownMs: Number(row.cooldown_ms),
                nextProbeAt: row.next_probe_at,
              },
      },
    ]),
  );
}
