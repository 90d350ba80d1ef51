/** Inserts rows of the archive, unless the database has them or they were expunged. */
import type { ArchiveKind } from '../../domain/archive.ts';
import { deliveryRangeOfEvent, firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/retention.ts';
import type { ArchivedRow } from '../../ports/archive-rows.ts';
import type { RestoreTask } from '../../ports/archive-store.ts';
import { withoutExpunged } from '../../ports/expunged-rows.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Client, Pool } from '../database.ts';
import { claimTask } from './tasks.ts';
import { readTombstones } from './tombstones.ts';

/** The task's selection: a day, and the event if only one is wanted. */
export interface RestoreSelection {
  readonly eventId?: Uuid | null;
  readonly since: number | null;
}

export async function claimRestore(pool: Pool, runner: Uuid, silentMs: number): Promise<RestoreTask | null> {
  const task = await claimTask(pool, runner, silentMs, ['restore']);
  if (task === null) return null;
  const { eventId = null, since } = task.selection as RestoreSelection;
  const at = eventId === null ? (since ?? 0) : timeOfId(eventId);
  return { id: task.id, runner, eventId, day: new Date(at).toISOString().slice(0, 10) };
}

/** The keys of everything that the task restores. */
function rangeOf({ eventId, day }: RestoreTask): [first: Uuid, last: Uuid] {
  if (eventId !== null) return deliveryRangeOfEvent(eventId);
  const startMs = Date.parse(`${day}T00:00:00.000Z`);
  return [firstIdAt(startMs), firstIdAt(startMs + DAY_MS)];
}

export async function beginRestore(
  client: Client,
  task: RestoreTask,
  { keepMs, total }: { readonly keepMs: number; readonly total: number },
): Promise<void> {
  await client.query(
    `insert into posthorn.restored_ranges (first_id, last_id, until) values ($1, $2, now() + make_interval(secs => $3::float8 / 1000))
         on conflict (first_id, last_id) do update set until = greatest(restored_ranges.until, excluded.until)`,
    [...rangeOf(task), keepMs],
  );
  await client.query(
    'update posthorn.tasks set total = least($3::float8, 2147483647), done = 0, failed = 0, updated_at = now() where id = $1 and runner = $2',
    [task.id, task.runner, total],
  );
}

/**
 * Returns false if the task was cancelled, or another process has it. The tenants are locked, so that an expunge waits for this
 * transaction and deletes what it inserted. So does the expunge of an event (`waitForRestore`).
 */
export async function restoreRows(
  client: Client,
  task: RestoreTask,
  kind: ArchiveKind,
  rows: readonly ArchivedRow[],
): Promise<boolean> {
  const { rows: running } = await client.query(
    "select from posthorn.tasks where id = $1 and state = 'running' and runner = $2 for update",
    [task.id, task.runner],
  );
  if (running.length === 0) return false;
  await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.restores]);
  const wanted = await selectAllowed(client, task, kind, rows);
  await insertRows(client, kind, wanted);
  await client.query(
    'update posthorn.tasks set done = done + $2, heartbeat_at = clock_timestamp(), updated_at = now() where id = $1',
    [task.id, rows.length],
  );
  return true;
}

/** Leaves out rows of tenants that were expunged or are being expunged, and payloads that were deleted. */
async function selectAllowed(
  client: Client,
  task: RestoreTask,
  kind: ArchiveKind,
  rows: readonly ArchivedRow[],
): Promise<ArchivedRow[]> {
  const [minId, maxId] = rangeOf(task);
  const tombstones = await readTombstones(client, { minId, maxId });
  const left = rows
    .map((row): ArchivedRow | null => withoutExpunged(kind, row, tombstones))
    .filter((row) => row !== null && row.tenant !== null)
    .map((row) => row!);
  const names = [...new Set(left.map(({ tenant }) => tenant!))].sort();
  // A tenant without data may have been deleted after its rows were archived.
  await client.query(
    'insert into posthorn.tenants (id) select unnest($1::text[]) on conflict (id) do nothing',
    [names],
  );
  const { rows: open } = await client.query<{ id: string }>(
    'select id from posthorn.tenants where id = any ($1::text[]) and expunging_at is null order by id for share',
    [names],
  );
  const isOpen = new Set(open.map(({ id }) => id));
  return left.filter(({ tenant }) => isOpen.has(tenant!));
}

/** Columns in the order of the parameters, each with the type of its array and how it is read. */
const COLUMNS: Readonly<
  Record<ArchiveKind, readonly (readonly [name: string, array: string, cast?: string])[]>
> = {
  events: [
    ['id', 'uuid'],
    ['tenant', 'text'],
    ['type', 'text'],
    ['data', 'bytea'],
    ['deliveries', 'int'],
    ['idempotency_key', 'text'],
    ['options', 'text', 'json'],
  ],
  deliveries: [
    ['id', 'uuid'],
    ['endpoint_id', 'uuid'],
    ['status', 'text'],
    ['reason', 'text'],
    ['attempts', 'int'],
    ['replays', 'int'],
    ['last_status_code', 'smallint'],
    ['last_error_class', 'text'],
    ['finished_at', 'timestamptz'],
    ['tenant', 'text'],
    ['event_type', 'text'],
    ['discard', 'text', 'jsonb'],
  ],
  attempts: [
    ['delivery_id', 'uuid'],
    ['id', 'uuid'],
    ['number', 'int'],
    ['started_at', 'timestamptz'],
    ['duration_ms', 'int'],
    ['dns_ms', 'int'],
    ['connect_ms', 'int'],
    ['tls_ms', 'int'],
    ['first_byte_ms', 'int'],
    ['status_code', 'smallint'],
    ['outcome', 'text'],
    ['error_class', 'text'],
    ['error_message', 'text'],
    ['url', 'text'],
    ['request_headers', 'text'],
    ['response_headers', 'text'],
    ['response_body', 'bytea'],
    ['response_truncated', 'boolean'],
    ['trigger', 'text'],
    ['worker', 'text'],
  ],
};

async function insertRows(client: Client, kind: ArchiveKind, rows: readonly ArchivedRow[]): Promise<void> {
  if (rows.length === 0) return;
  const columns = COLUMNS[kind];
  const names = columns.map(([name]) => name).join(', ');
  const arrays = columns.map(([, array], n) => `$${n + 1}::${array}[]`).join(', ');
  const values = columns
    .map(([name, , cast]) => `t.${name}${cast === undefined ? '' : `::${cast}`}`)
    .join(', ');
  // A delivery that was replayed after it was archived is in another table.
  const unlessWaiting =
    kind === 'deliveries'
      ? `where not exists (select from posthorn.queue q where q.id = t.id)
           and not exists (select from posthorn.dead_letters d where d.id = t.id)`
      : '';
  const { rows: inserted } = await client.query<{ id: Uuid }>(
    `insert into posthorn.${kind} (${names})
     select ${values} from unnest(${arrays}) as t(${names}) ${unlessWaiting} on conflict do nothing returning id`,
    columns.map(([name]) =>
      rows.map((row) => toParameter(name, (row as unknown as Record<string, unknown>)[name])),
    ),
  );
  if (kind === 'deliveries') await removeReplayed(client, inserted);
}

/**
 * Deletes deliveries that a replay moved from the history into the queue while the insert ran. The insert waited for the replay, but
 * its snapshot does not contain the row in the queue. With two rows of a delivery, its result could never be recorded.
 */
async function removeReplayed(client: Client, inserted: readonly { readonly id: Uuid }[]): Promise<void> {
  await client.query(
    `delete from posthorn.deliveries h
      where h.id = any ($1::uuid[])
        and (exists (select from posthorn.queue q where q.id = h.id) or exists (select from posthorn.dead_letters d where d.id = h.id))`,
    [inserted.map(({ id }) => id)],
  );
}

function toParameter(name: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return name === 'finished_at' || name === 'started_at' ? toTimestamp(String(value)) : value;
}

/** Microseconds since 1970 as PostgreSQL reads them. */
function toTimestamp(micros: string): string {
  const total = BigInt(micros);
  const seconds = new Date(Number(total / 1_000_000n) * 1000).toISOString().slice(0, 19);
  return `${seconds}.${String(total % 1_000_000n).padStart(6, '0')}Z`;
}

export async function endRestore(client: Client, task: RestoreTask, error: string | null): Promise<void> {
  await client.query(
    `update posthorn.tasks
        set state = case when $3::text is null then 'done' else 'failed' end, error = $3, runner = null,
            total = case when $3::text is null then done else total end, finished_at = now(), updated_at = now()
      where id = $1 and runner = $2 and state = 'running'`,
    [task.id, task.runner, error],
  );
}
