/** What the database knows about the archive: requests, parts, failures. */
import { ArchiveError, type ArchiveKind, dayOf, isDay } from '../../domain/archive.ts';
import { newId, timeOfId, type Uuid } from '../../domain/ids.ts';
import type { ArchiveProgress, RecordedPart, StalePart } from '../../ports/archive-store.ts';
import type { Partition } from '../../ports/retention-store.ts';
import type { Pool, Queryable } from '../database.ts';
import { WHOLE_TENANT } from './expunge-tenant.ts';

/** Requests the export of a partition, if it was not requested yet. Returns whether the partition is in the archive and verified. */
export async function requestArchive(pool: Pool, { name, table, fromMs, toMs }: Partition): Promise<boolean> {
  const { rows } = await pool.query<{ is_verified: boolean }>(
    `insert into posthorn.archived_partitions as a (partition, parent, from_at, to_at)
     values ($1, $2, to_timestamp($3::float8 / 1000), to_timestamp($4::float8 / 1000))
         on conflict (partition) do update set parent = excluded.parent
     returning a.verified_at is not null as is_verified`,
    [name, table, fromMs, toMs],
  );
  return rows[0]!.is_verified;
}

const REQUESTED = `posthorn.archived_partitions a
  join posthorn.partitions p on p.name = a.partition and p.state = 'attached' and not p.kept
 where a.verified_at is null`;

/** Whether the archive process has something to do. */
export async function hasArchiveWork(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    `select exists (select from ${REQUESTED})
         or exists (select from posthorn.archive_parts where stale_at is not null)
         or exists (select from posthorn.expunged x, posthorn.archive_state s where x.seq > s.tombstones_copied)
         or exists (select from posthorn.tasks where kind = 'restore' and state in ('queued', 'running')) as found`,
  );
  return rows[0]!.found;
}

export async function listRequested(pool: Pool): Promise<Partition[]> {
  const { rows } = await pool.query<{ name: string; table: ArchiveKind; from_ms: number; to_ms: number }>(
    `select a.partition as name, a.parent as table, extract(epoch from a.from_at)::float8 * 1000 as from_ms,
            extract(epoch from a.to_at)::float8 * 1000 as to_ms
       from ${REQUESTED} order by a.from_at, a.requested_at`,
  );
  return rows.map(({ from_ms, to_ms, ...rest }) => ({ ...rest, fromMs: from_ms, toMs: to_ms }));
}

/** How long a partition may wait for its export while exports pause between steps. An alert fires after two days. */
const MAX_WAIT = "interval '1 day'";

/** Whether a partition has waited too long for its export, or a younger one of its kind has expired too. `days`: how long each kind is kept, 0 is forever. */
export async function isArchiveBehind(
  pool: Pool,
  days: Readonly<Record<ArchiveKind, number>>,
): Promise<boolean> {
  const { rows } = await pool.query<{ is_behind: boolean }>(
    `select exists (
       select from ${REQUESTED}
          and (a.requested_at < now() - ${MAX_WAIT}
               or exists (select from posthorn.partitions y
                           where y.parent = a.parent and y.state = 'attached' and not y.kept and y.from_at > a.from_at
                             and y.to_at <= now() - nullif(($1::jsonb ->> y.parent)::int, 0) * interval '1 day')))
       as is_behind`,
    [JSON.stringify(days)],
  );
  return rows[0]!.is_behind;
}

const PART = `p.kind, p.day::text as day, p.part, p.partition, p.archive, p.rows::float8 as rows, p.bytes::float8 as bytes, p.sha256,
              p.rows_sha256 as "rowsSha256", p.min_id as "minId", p.max_id as "maxId", p.tenants`;

export async function listParts(
  pool: Pool,
  filter: { readonly kind?: ArchiveKind; readonly day?: string; readonly partition?: string },
): Promise<RecordedPart[]> {
  const { rows } = await pool.query<RecordedPart>(
    `select ${PART} from posthorn.archive_parts p
      where ($1::text is null or p.kind = $1) and ($2::date is null or p.day = $2) and ($3::text is null or p.partition = $3)
      order by p.kind, p.day, p.part`,
    [filter.kind ?? null, filter.day ?? null, filter.partition ?? null],
  );
  return rows;
}

/** Whether files are recorded in the archive with this URL. */
export async function hasParts(pool: Pool, archive: string): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    'select exists (select from posthorn.archive_parts where archive = $1) as found',
    [archive],
  );
  return rows[0]!.found;
}

export async function listStaleParts(pool: Pool): Promise<StalePart[]> {
  const { rows } = await pool.query<StalePart>(
    `select ${PART}, p.stale_at::text as "staleAt" from posthorn.archive_parts p where p.stale_at is not null order by p.stale_at, p.kind, p.day, p.part`,
  );
  return rows;
}

/**
 * Records a new part. It is stale if something was expunged while the file was written, or if a tombstone is not applied yet: the
 * file may contain it. The lock waits for expunges that are not committed; later ones mark the part.
 */
export async function insertPart(
  client: Queryable,
  part: RecordedPart,
  lastTombstone: string,
): Promise<void> {
  await client.query('lock table posthorn.expunged in share mode');
  await client.query(
    `insert into posthorn.archive_parts (kind, day, part, partition, archive, rows, bytes, sha256, rows_sha256, min_id, max_id, tenants,
                                         stale_at)
     values ($1::text, $2::date, $3, $4, $5, $6, $7, $8, $9, $10::uuid, $11::uuid, $12::text[],
             case when exists (select from posthorn.expunged x
                                where (x.seq > $13::bigint or x.applied_at is null or x.settle_until is not null)
                                  and (x.kind = 'tenant'
                                       or (x.kind = 'event' and $1 <> 'deliveries' and x.id >= posthorn.event_of_delivery($10::uuid)::text
                                           and x.id <= $11::uuid::text)
                                       or (x.kind = 'batch' and $1 = 'attempts' and x.first_id <= $11::uuid and x.last_id >= $10::uuid)))
                  then clock_timestamp() end)`,
    [
      part.kind,
      part.day,
      part.part,
      part.partition,
      part.archive,
      part.rows,
      part.bytes,
      part.sha256,
      part.rowsSha256,
      part.minId,
      part.maxId,
      part.tenants,
      lastTombstone,
    ],
  );
}

/** Records what a part contains after it was rewritten. Tenants that were expunged meanwhile stay removed. */
export async function updatePart(pool: Pool, part: StalePart): Promise<void> {
  await pool.query(
    `update posthorn.archive_parts
        set rows = $4, bytes = $5, sha256 = $6, rows_sha256 = $7, min_id = $8, max_id = $9, written_at = now(),
            tenants = case when stale_at::text = $11 then $10::text[] else tenants end
      where kind = $1 and day = $2::date and part = $3`,
    [
      part.kind,
      part.day,
      part.part,
      part.rows,
      part.bytes,
      part.sha256,
      part.rowsSha256,
      part.minId,
      part.maxId,
      part.tenants,
      part.staleAt,
    ],
  );
}

/** The part stays stale if something else was expunged since it was read. */
export async function clearStale(pool: Pool, { kind, day, part, staleAt }: StalePart): Promise<void> {
  await pool.query(
    `update posthorn.archive_parts set stale_at = null
      where kind = $1 and day = $2::date and part = $3 and stale_at::text = $4`,
    [kind, day, part, staleAt],
  );
}

export async function forgetParts(pool: Pool, partition: string, days: readonly string[]): Promise<void> {
  await pool.query('delete from posthorn.archive_parts where partition = $1 and day = any ($2::date[])', [
    partition,
    days,
  ]);
}

export async function markVerified(pool: Pool, partition: string, rows: number): Promise<void> {
  await pool.query(
    'update posthorn.archived_partitions set verified_at = now(), rows = $2 where partition = $1',
    [partition, rows],
  );
}

/**
 * Returns the task of a partition's export. A repeated export continues the task of the one that failed: while the archive is full,
 * the export fails every minute, and each run would otherwise create a task.
 */
export async function openArchiveTask(
  pool: Pool,
  { name, table }: Partition,
  { total, nowMs }: { readonly total: number; readonly nowMs: number },
): Promise<Uuid> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `with open as (
       update posthorn.tasks
          set state = 'running', error = null, finished_at = null, total = $3::int, heartbeat_at = clock_timestamp(), updated_at = now()
        where id = (select id from posthorn.tasks
                     where kind = 'archive' and state in ('running', 'failed') and why = $1::text
                     order by created_at desc limit 1)
       returning id
     ),
     made as (
       insert into posthorn.tasks (id, kind, state, selection, why, total, created_by, heartbeat_at)
       select $2, 'archive', 'running', $4::jsonb, $1, $3::int, 'retention', clock_timestamp() where not exists (select from open) returning id
     )
     select id from open union all select id from made`,
    [`Archive of ${table}: ${name}`, newId(nowMs), Math.min(total, MAX_INT), JSON.stringify(WHOLE_TENANT)],
  );
  return rows[0]!.id;
}

const MAX_INT = 2_147_483_647;

export async function reportArchiveProgress(
  pool: Pool,
  task: Uuid,
  { done, total }: ArchiveProgress,
): Promise<void> {
  await pool.query(
    `update posthorn.tasks set done = $2::int, total = greatest($3::int, $2::int), heartbeat_at = clock_timestamp(), updated_at = now()
      where id = $1 and state = 'running'`,
    [task, Math.min(done, MAX_INT), Math.min(total, MAX_INT)],
  );
}

export async function closeArchiveTask(pool: Pool, task: Uuid, error: string | null): Promise<void> {
  await pool.query(
    `update posthorn.tasks
        set state = case when $2::text is null then 'done' else 'failed' end, error = $2,
            total = case when $2::text is null then done else total end, runner = null, finished_at = now(), updated_at = now()
      where id = $1 and state = 'running'`,
    [task, error],
  );
}

export async function setArchiveFailure(
  pool: Pool,
  failure: { readonly partition: string | null; readonly message: string } | null,
): Promise<void> {
  await pool.query(
    `update posthorn.archive_state
        set failed_at = case when $1::text is null then null else coalesce(failed_at, now()) end, error = $1, partition = $2
      where error is distinct from $1`,
    [failure?.message ?? null, failure?.partition ?? null],
  );
}

export interface ArchiveStatus {
  /** True: no server may drop a partition before it is archived. */
  readonly isRequired: boolean;
  /** Why the archive cannot be written. Null: it can. */
  readonly error: string | null;
}

export async function readArchiveStatus(client: Queryable): Promise<ArchiveStatus> {
  const { rows } = await client.query<ArchiveStatus>(
    'select is_required as "isRequired", error from posthorn.archive_state',
  );
  // Without the row, nobody knows whether there is an archive. Drop nothing.
  return rows[0] ?? { isRequired: true, error: 'The table posthorn.archive_state is empty.' };
}

export interface ArchiveBacklog {
  /** Partitions that wait for their export. */
  readonly partitions: number;
  readonly failedAt: Date | null;
  readonly error: string | null;
}

export async function readArchiveBacklog(client: Queryable): Promise<ArchiveBacklog> {
  const { rows } = await client.query<ArchiveBacklog>(
    `select (select count(*)::int from ${REQUESTED}) as partitions, s.failed_at as "failedAt", s.error
       from (select) one left join posthorn.archive_state s on true`,
  );
  return rows[0]!;
}

export async function setArchiveRequired(client: Queryable, isRequired: boolean): Promise<void> {
  await client.query('update posthorn.archive_state set is_required = $1 where is_required <> $1', [
    isRequired,
  ]);
}

export async function readDeploymentId(pool: Pool): Promise<Uuid> {
  const { rows } = await pool.query<{ deployment_id: Uuid }>(
    'select deployment_id from posthorn.archive_state',
  );
  const row = rows[0];
  if (row === undefined)
    throw new ArchiveError('The table posthorn.archive_state is empty. Run `posthorn migrate`.');
  return row.deployment_id;
}

export interface ArchivedDay {
  /** The URL of the archive. */
  readonly archive: string;
  readonly day: string;
  readonly part: number;
}

/**
 * Returns the day of the archived file whose range of ids contains this event. Null: there is none, or none of its events belongs
 * to the tenant. Only the file itself tells whether the event exists. Partitions that were not dropped yet do not count.
 */
export async function findArchivedDay(
  client: Queryable,
  eventId: Uuid,
  tenant: string | null,
): Promise<ArchivedDay | null> {
  const wanted = dayOf(timeOfId(eventId));
  // A caller may pass any id, and PostgreSQL cannot read every year that an id can contain.
  if (!isDay(wanted)) return null;
  const { rows } = await client.query<ArchivedDay>(
    `select p.archive, p.day::text as day, p.part from posthorn.archive_parts p
      where p.kind = 'events' and p.day = ($2::text)::date and p.min_id <= $1 and p.max_id >= $1
        and ($3::text is null or p.tenants is null or $3 = any (p.tenants))
        and not exists (select from posthorn.partitions t where t.name = p.partition and t.state = 'attached')
      limit 1`,
    [eventId, wanted, tenant],
  );
  return rows[0] ?? null;
}

/** Whether files of this day exist. */
export async function hasArchivedDay(client: Queryable, day: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select from posthorn.archive_parts p where p.day = $1::date) as found',
    [day],
  );
  return rows[0]!.found;
}

/** Whether a file that must be rewritten may contain this event. */
export async function isInStalePart(client: Queryable, eventId: Uuid): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (select from posthorn.archive_parts p
                     where p.stale_at is not null and p.min_id <= posthorn.last_delivery_id($1::uuid) and p.max_id >= $1::uuid) as found`,
    [eventId],
  );
  return rows[0]!.found;
}

export async function hasStaleParts(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select from posthorn.archive_parts where stale_at is not null) as found',
  );
  return rows[0]!.found;
}
