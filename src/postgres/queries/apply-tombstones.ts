/** Expunges again what a restore brought back: tombstones that have not been applied to this database. */
import { idPrefixes, newId, publicId, type Uuid } from '../../domain/ids.ts';
import type { StoredTombstone } from '../../domain/tombstones.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import { lockEvent } from './events.ts';
import {
  deleteBatchAnswers,
  deleteInboxCopies,
  expungeBatches,
  findLateBatches,
  lockBatches,
} from './expunge-batches.ts';
import { expungePayload, waitForRestore } from './expunge-payload.ts';
import { closeTenant, hasOpenExpunge, openExpunges, WHOLE_TENANT } from './expunge-tenant.ts';
import { createTask } from './tasks.ts';
import { lockTenant } from './tenants.ts';
import { mergeTombstones } from './tombstones.ts';

const PER_ROUND = 1_000;
/** The actor that `expunged_by` and the task show. */
const TOMBSTONE = 'tombstone';
const RECENTLY_FAILED = `posthorn.tasks f
  where f.kind = 'expunge' and f.state = 'failed' and f.selection ->> 'tenant' = x.id and f.finished_at > now() - interval '1 hour'`;

type Kind = 'event' | 'tenant' | 'batch';

export async function applyTombstones(pool: Pool, nowMs: number): Promise<void> {
  await applyNew(pool, nowMs);
  await removeLateResults(pool);
}

/** Adds tombstones that the database lacks, and applies them at once. Those of tenants become tasks. Returns how many were new. */
export async function mergeAndApply(pool: Pool, tombstones: readonly StoredTombstone[]): Promise<number> {
  const added = await mergeTombstones(pool, tombstones);
  for (let left = added; left > 0; left -= PER_ROUND) await applyNew(pool, Date.now());
  return added;
}

async function applyNew(pool: Pool, nowMs: number): Promise<void> {
  // An expunge that failed continues with a new task, but not immediately: it may fail again.
  const { rows } = await pool.query<{ kind: Kind; id: string }>(
    `select x.kind, x.id from posthorn.expunged x
      where x.applied_at is null
        and not (x.kind = 'tenant' and (exists (select from ${openExpunges('x.id')}) or exists (select from ${RECENTLY_FAILED})))
      order by x.at limit $1`,
    [PER_ROUND],
  );
  for (const { kind, id } of rows)
    await inTransaction(pool, (client) => {
      if (kind === 'tenant') return applyToTenant(client, id, nowMs);
      return kind === 'event' ? applyToEvent(client, id) : applyToBatch(client, id);
    });
}

async function applyToBatch(client: Client, id: Uuid): Promise<void> {
  await waitForRestore(client);
  await removeLateOfBatch(client, id);
  await markApplied(client, 'batch', id);
}

/** Requests that were on the wire during an expunge: their answers, and what an inbox stored of them. */
async function removeLateResults(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ kind: Kind; id: Uuid; at_ms: number }>(
    `select kind, id, extract(epoch from at)::float8 * 1000 as at_ms from posthorn.expunged
      where settle_until is not null order by settle_until limit $1`,
    [PER_ROUND],
  );
  for (const { kind, id, at_ms } of rows)
    await inTransaction(pool, async (client) => {
      await (kind === 'event' ? removeLateOfEvent(client, id, at_ms) : removeLateOfBatch(client, id));
      await client.query(
        `update posthorn.expunged x set settle_until = null
          where x.kind = $1 and x.id = $2 and x.settle_until < now()
            and not exists (select from posthorn.open_batches o where o.id::text = x.id)`,
        [kind, id],
      );
    });
}

async function removeLateOfEvent(client: Client, id: Uuid, expungedAtMs: number): Promise<void> {
  const event = await lockEvent(client, id, null);
  if (event === null) return;
  await deleteInboxCopies(client, event.tenant, [publicId(idPrefixes.event, id)]);
  const batches = await findLateBatches(client, id, expungedAtMs);
  await lockBatches(client, batches);
  await expungeBatches(client, event.tenant, batches);
}

async function removeLateOfBatch(client: Client, id: Uuid): Promise<void> {
  await lockBatches(client, [id]);
  await deleteBatchAnswers(client, [id]);
  const { rows } = await client.query<{ tenant: string }>(
    'select e.tenant from posthorn.batches b join posthorn.endpoints e on e.id = b.endpoint_id where b.id = $1',
    [id],
  );
  const tenant = rows[0]?.tenant;
  if (tenant !== undefined) await deleteInboxCopies(client, tenant, [publicId(idPrefixes.batch, id)]);
}

async function applyToEvent(client: Client, id: Uuid): Promise<void> {
  await waitForRestore(client);
  const event = await lockEvent(client, id, null);
  if (event === null) await markApplied(client, 'event', id);
  else await expungePayload(client, event, TOMBSTONE);
}

async function applyToTenant(client: Client, id: string, nowMs: number): Promise<void> {
  if ((await lockTenant(client, id)) === null) return markApplied(client, 'tenant', id);
  if (!(await closeTenant(client, id)) && (await hasOpenExpunge(client, id))) return;
  await createTask(client, {
    id: newId(nowMs),
    kind: 'expunge',
    selection: { ...WHOLE_TENANT, tenant: id },
    why: null,
    total: 0,
    tenant: null,
    created_by: TOMBSTONE,
  });
}

async function markApplied(client: Client, kind: Kind, id: string): Promise<void> {
  await client.query(
    'update posthorn.expunged set applied_at = now(), seq = default where kind = $1 and id = $2',
    [kind, id],
  );
}
