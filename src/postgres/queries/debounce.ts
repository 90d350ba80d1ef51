import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import {
  acceptedAt,
  DEBOUNCE_PAUSE_MS,
  type DebounceDecision,
  type DebounceDecisionSet,
  type DebounceRequest,
  DROP,
  FIRST_PAUSE_MS,
  latestWindowEnd,
  MAX_GROUP,
  onWireSince,
  SEND_AS_IT_IS,
  waitUntil,
} from '../../ports/debouncer.ts';
import type { NewDelivery } from '../../ports/event-store.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import { type Group, readGroups } from './debounce-groups.ts';
import { isStartedSince, type SupersedeTarget, supersede } from './supersede.ts';

/** Ids and acceptance numbers may differ a little in their order: the newest delivery is among this many with the highest ids. */
const NEWEST_READ = 100;

export const hasDebounceKey = ({ debounceKey }: NewDelivery): boolean => (debounceKey ?? null) !== null;

/**
 * Stores the keys of deliveries that are about to be written. Call it before: a delivery is never visible without its
 * key. A key of a delivery that is not written after all is harmless: readers compare the endpoints.
 */
export async function storeDebounceKeys(pool: Pool, deliveries: readonly NewDelivery[]): Promise<void> {
  const keyed = deliveries.filter(hasDebounceKey);
  if (keyed.length === 0) return;
  await pool.query({
    name: 'store_debounce_keys',
    text: `insert into posthorn.debounce_keys (delivery_id, endpoint_id, key, since)
           select id, endpoint_id, key, to_timestamp(since)
             from unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[]) as t(id, endpoint_id, key, since)
               on conflict (delivery_id) do update set endpoint_id = excluded.endpoint_id, key = excluded.key`,
    values: [
      keyed.map(({ id }) => id),
      keyed.map(({ endpointId }) => endpointId),
      keyed.map(({ debounceKey }) => debounceKey),
      keyed.map(({ id }) => timeOfId(id) / 1000),
    ],
  });
}

/** The decisions of one call, in its transaction. */
interface Round {
  readonly client: Client;
  readonly request: DebounceRequest;
  readonly decisions: Map<Uuid, DebounceDecision>;
  readonly skipped: Uuid[];
  /** Deliveries that must not be superseded: those that were under way before, and those that this round sends. */
  readonly underWay: Uuid[];
}

interface AskedRow {
  readonly id: Uuid;
  readonly seq: string;
  readonly key: string | null;
  readonly attempts: number;
  readonly replays: number;
}

/** A delivery of the request that has a debounce key. */
interface KeyedRow {
  readonly id: Uuid;
  readonly seq: bigint;
  readonly key: string;
}

export function decideDebounce(pool: Pool, request: DebounceRequest): Promise<DebounceDecisionSet> {
  return inTransaction(pool, async (client) => {
    const decisions = new Map<Uuid, DebounceDecision>();
    const round: Round = { client, request, decisions, skipped: [], underWay: [...request.underWay] };
    const keyed: KeyedRow[] = [];
    const rows = await readAsked(round);
    for (const { id, attempts } of request.asked) {
      const row = rows.get(id);
      if (row === undefined || row.attempts !== attempts) decisions.set(id, DROP);
      else if (row.key === null || row.replays > 0) decisions.set(id, SEND_AS_IT_IS);
      else keyed.push({ id, seq: BigInt(row.seq), key: row.key });
    }
    if (request.settings.mode === 'last') await decideLast(round, keyed);
    else for (const { id, key } of keyed) decisions.set(id, await decideFirst(round, id, key));
    return { decisions, skipped: round.skipped };
  });
}

async function readAsked({ client, request }: Round): Promise<Map<Uuid, AskedRow>> {
  const { rows } = await client.query<AskedRow>({
    name: 'read_debounced',
    text: `select q.id, q.seq, q.attempts, q.replays, k.key
             from posthorn.queue q left join posthorn.debounce_keys k on k.delivery_id = q.id and k.endpoint_id = $2
            where q.id = any ($1::uuid[])`,
    values: [request.asked.map(({ id }) => id), request.endpointId],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

// --- mode `last` --------------------------------------------------------------------------------------------

/** What happens to a group that has nothing on the wire. */
interface Plan {
  readonly group: Group;
  /** The deliveries of the group that the request is about. */
  readonly own: readonly KeyedRow[];
  /** The delivery that is sent, now or later. */
  readonly by: Uuid;
  readonly bySeq: string;
  /** When `by` is sent if no newer delivery arrives, and the latest time if newer ones keep arriving. */
  readonly sendAt: number;
  readonly latestSendAt: number;
  readonly isDue: boolean;
  /** True if the older deliveries end now. */
  readonly endsOlder: boolean;
  /** A delivery that stays, so that it asks for a decision again when the group must be sent. Null: `by` asks. */
  readonly watch: Uuid | null;
}

/** Decides about all keys together. */
async function decideLast(round: Round, keyed: readonly KeyedRow[]): Promise<void> {
  if (keyed.length === 0) return;
  const { request, decisions, skipped } = round;
  const pause = waitUntil(request.now + DEBOUNCE_PAUSE_MS);
  for (const { id } of keyed) decisions.set(id, pause);
  const asked = Map.groupBy(keyed, ({ key }) => key);
  const groups = await readGroups(round, [...asked.keys()]);
  const plans = groups
    .filter((group) => !group.is_busy)
    .map((group) => planGroup(round, group, asked.get(group.key)!));
  const unfinished = await endOlder(
    round,
    plans.filter(({ endsOlder }) => endsOlder),
  );
  const ended = new Set(skipped);
  const sent: Uuid[] = [];
  const chosen: Uuid[] = [];
  for (const plan of plans) {
    const { own, by, isDue } = plan;
    // If the older deliveries of the group end: newer ones wait until `by` is sent, and older ones until a later call ends them.
    for (const { id } of own)
      if (ended.has(id)) decisions.set(id, DROP);
      else if (!plan.endsOlder || id === plan.watch) decisions.set(id, waitUntil(plan.latestSendAt));
    const isOwn = own.some(({ id }) => id === by);
    if (isOwn && isDue && !unfinished.has(plan)) sent.push(by);
    else {
      if (isDue) chosen.push(by);
      if (isOwn) decisions.set(by, waitUntil(isDue ? request.now : plan.sendAt));
    }
  }
  if (chosen.length > 0) await makeDue(round, chosen);
  await start(round, sent);
}

function planGroup({ request }: Round, group: Group, own: readonly KeyedRow[]): Plan {
  const { settings, now } = request;
  const latestSendAt = Math.min(group.since, now) + settings.maxWaitMs;
  const sendAt = Math.min(acceptedAt(group.newest, now) + settings.windowMs, latestSendAt);
  const isDue = group.chosen !== null || now >= sendAt;
  const by = group.chosen ?? group.newest;
  return {
    group,
    own,
    by,
    bySeq: group.chosen_seq ?? group.newest_seq,
    sendAt,
    latestSendAt,
    isDue,
    endsOlder: isDue || group.count > MAX_GROUP,
    watch: isDue || own.some(({ id }) => id === by) ? null : own[0]!.id,
  };
}

/** Ends the older deliveries of these groups, at most `maxEnded`. Returns the plans with older deliveries that may be left. */
async function endOlder(round: Round, plans: readonly Plan[]): Promise<Set<Plan>> {
  const { client, request, underWay, skipped } = round;
  const targetOf = ({ group: { key }, by, bySeq, watch }: Plan): SupersedeTarget => ({
    key,
    by,
    kept: watch,
    beforeId: null,
    beforeSeq: bySeq,
  });
  let left = request.maxEnded;
  const small: Plan[] = [];
  const large: Plan[] = [];
  for (const plan of plans) {
    const { count } = plan.group;
    (count <= left ? small : large).push(plan);
    if (count <= left) left -= count;
  }
  const limit = request.maxEnded;
  skipped.push(...(await supersede(client, request, small.map(targetOf), { underWay, limit, order: 'asc' })));
  const unfinished = new Set<Plan>();
  for (const [index, plan] of large.entries()) {
    // Small groups must not keep a large one from making progress.
    const share = index === 0 ? Math.max(left, Math.ceil(limit / 2)) : left;
    // Before the group is due, the newest end first: the oldest ones show since when the group waits (readGroups).
    const order = plan.isDue ? 'asc' : 'desc';
    const ended = await supersede(client, request, [targetOf(plan)], { underWay, limit: share, order });
    skipped.push(...ended);
    left = Math.max(0, left - ended.length);
    if (ended.length >= share) unfinished.add(plan);
  }
  return unfinished;
}

// --- mode `first` -------------------------------------------------------------------------------------------

async function decideFirst(round: Round, deliveryId: Uuid, key: string): Promise<DebounceDecision> {
  const { client, request } = round;
  const window = await openWindow(round, deliveryId, key);
  if (window.first_id === deliveryId) return send(round, deliveryId);
  const end = firstIdAt(window.until);
  const { rows } = await client.query<{
    isWaiting: boolean;
    isFirstWaiting: boolean;
    isFirstDelivered: boolean;
  }>(
    `select exists (select from posthorn.queue where id = $1) as "isFirstWaiting",
            exists (select from posthorn.queue where id = $2) as "isWaiting",
            exists (select from posthorn.deliveries where id = $1 and status = 'delivered') as "isFirstDelivered"`,
    [window.first_id, deliveryId],
  );
  const { isWaiting, isFirstWaiting, isFirstDelivered } = rows[0]!;
  const supersedeFor = async (by: Uuid, kept: Uuid | null): Promise<void> => {
    const target = { key, by, kept, beforeId: end, beforeSeq: null };
    const limit = request.maxEnded - round.skipped.length;
    const ended = await supersede(client, request, [target], {
      underWay: round.underWay,
      limit,
      order: 'asc',
    });
    round.skipped.push(...ended);
  };
  /** If this call has ended `maxEnded` deliveries without this one, a later call ends it. */
  const endOrWait = (): DebounceDecision =>
    round.skipped.includes(deliveryId) ? DROP : waitUntil(request.now + DEBOUNCE_PAUSE_MS);
  // An earlier decision of this round ended this delivery.
  if (!isWaiting) return DROP;
  if (isFirstDelivered) {
    await supersedeFor(window.first_id, null);
    return endOrWait();
  }
  if (isFirstWaiting) {
    // Keep only the newest delivery besides the first: it is sent if the first one dies.
    const newest = await findNewest(round, key, window.first_id, end);
    await supersedeFor(window.first_id, newest);
    if (deliveryId !== newest) return endOrWait();
    await postponeBehind(round, deliveryId, window.first_id);
    return DROP;
  }
  // The first one died: the newest takes its place.
  const newest = (await findNewest(round, key, null, end)) ?? deliveryId;
  await client.query(
    'update posthorn.debounce_windows set first_id = $3 where endpoint_id = $1 and key = $2',
    [request.endpointId, key, newest],
  );
  // The deliveries that were skipped in favour of the first one name it. A reader follows this link to the newest.
  await client.query(
    `insert into posthorn.debounced (delivery_id, endpoint_id, by_id) select $1, $2, $3 where $1 <> $3::uuid
         on conflict (delivery_id) do update set by_id = excluded.by_id`,
    [window.first_id, request.endpointId, newest],
  );
  await supersedeFor(newest, newest);
  if (deliveryId === newest) return send(round, deliveryId);
  await makeDue(round, [newest]);
  return endOrWait();
}

/** Returns the window of the key. If there is none, or it ended before this delivery was accepted, the delivery opens one. */
async function openWindow(
  { client, request }: Round,
  deliveryId: Uuid,
  key: string,
): Promise<{ first_id: Uuid; until: number }> {
  const { now, settings } = request;
  const at = acceptedAt(deliveryId, now) || now;
  const until = at + settings.windowMs;
  const { rows } = await client.query<{ first_id: Uuid; until: number }>(
    `insert into posthorn.debounce_windows as w (endpoint_id, key, first_id, until) values ($1, $2, $3, to_timestamp($4))
         on conflict (endpoint_id, key) do update
        set first_id = case when w.until > to_timestamp($5) and w.until <= to_timestamp($6) then w.first_id
                            else excluded.first_id end,
            until = case when w.until > to_timestamp($5) and w.until <= to_timestamp($6) then w.until else excluded.until end
     returning first_id, extract(epoch from until)::float8 * 1000 as until`,
    [
      request.endpointId,
      key,
      deliveryId,
      until / 1000,
      at / 1000,
      latestWindowEnd(settings.windowMs, now) / 1000,
    ],
  );
  return rows[0]!;
}

/** Returns the newest delivery of the key before `end`. If `except` is given, leaves out this delivery and those on the wire. */
async function findNewest(
  { client, request, underWay }: Round,
  key: string,
  except: Uuid | null,
  end: Uuid,
): Promise<Uuid | null> {
  const { rows } = await client.query<{ id: Uuid }>(
    `select q.id from (
       select q.id, q.seq
         from (select * from posthorn.debounce_keys
                where endpoint_id = $1 and key = $2 and delivery_id < $3 order by delivery_id desc offset 0) k
        cross join lateral (select * from posthorn.queue where id = k.delivery_id and endpoint_id = $1 offset 0) q
        where q.replays = 0
        and ($4::uuid is null or (q.id <> $4 and q.id <> all ($5::uuid[]) and (q.id = any ($6::uuid[])
             or not ${isStartedSince('$7')})))
        limit ${NEWEST_READ}) q
      order by q.seq desc limit 1`,
    [
      request.endpointId,
      key,
      end,
      except,
      underWay,
      request.asked.map(({ id }) => id),
      onWireSince(request) / 1000,
    ],
  );
  return rows[0]?.id ?? null;
}

// --- both modes ---------------------------------------------------------------------------------------------

async function send(round: Round, id: Uuid): Promise<DebounceDecision> {
  await start(round, [id]);
  return round.decisions.get(id) ?? DROP;
}

/** Records that requests of these deliveries are sent now, so that no decision ends them as skipped. */
async function start({ client, request, decisions, underWay }: Round, ids: readonly Uuid[]): Promise<void> {
  if (ids.length === 0) return;
  const { rows } = await client.query<{ id: Uuid; debounced: number | null }>({
    name: 'start_debounced',
    text: `update posthorn.queue q set started_at = greatest(clock_timestamp(), to_timestamp($2::float8)) where q.id = any ($1::uuid[])
           returning q.id, (select k.debounced from posthorn.debounce_keys k where k.delivery_id = q.id) as debounced`,
    values: [ids, request.now / 1000],
  });
  for (const { id, debounced } of rows) decisions.set(id, { ...SEND_AS_IT_IS, debounced: debounced ?? 0 });
  underWay.push(...ids);
}

/**
 * Makes deliveries due now. They are sent even if newer ones arrive first. A delivery that was chosen while the clock was ahead is due
 * in the future, and the others of its key wait for it. So it becomes due now, too.
 */
const makeDue = ({ client, request }: Round, ids: readonly Uuid[]) =>
  client.query(
    `with chosen as (update posthorn.debounce_keys set chosen = true where delivery_id = any ($1::uuid[]) and not chosen)
     update posthorn.queue set due_at = to_timestamp($2) where id = any ($1::uuid[]) and due_at > to_timestamp($2)`,
    [ids, request.now / 1000],
  );

/** Makes a delivery due after another one, so that it does not displace the other one in a small lane. */
const postponeBehind = ({ client, request }: Round, id: Uuid, other: Uuid) =>
  client.query(
    `update posthorn.queue q
        set due_at = date_trunc('milliseconds', greatest(to_timestamp($4), f.due_at)) + make_interval(secs => $3::float8)
       from posthorn.queue f where q.id = $1 and f.id = $2`,
    [id, other, FIRST_PAUSE_MS / 1000, request.now / 1000],
  );

/** Deletes up to `max` rows about deliveries that are older than every partition that retention has left. */
export async function deleteDebounced(pool: Pool, max: number): Promise<number> {
  const { rows } = await pool.query<{ oldest: number | null }>(
    `select extract(epoch from min(from_at))::float8 * 1000 as oldest from posthorn.partitions
      where parent = 'deliveries' and state = 'attached' and not kept`,
  );
  const oldest = rows[0]!.oldest;
  if (oldest === null) return 0;
  const { rowCount } = await pool.query(
    `delete from posthorn.debounced
      where delivery_id = any (array(select delivery_id from posthorn.debounced where delivery_id < $1 order by delivery_id limit $2))`,
    [firstIdAt(oldest), max],
  );
  return rowCount ?? 0;
}
