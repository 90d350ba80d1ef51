/** Expunges again what a restore brought back: tombstones that have not been applied to this database. */
import { newId, type Uuid } from '../../domain/ids.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import { lockEvent } from './events.ts';
import { expungePayload, waitForRestore } from './expunge-payload.ts';
import { closeTenant, hasOpenExpunge, openExpunges, WHOLE_TENANT } from './expunge-tenant.ts';
import { createTask } from './tasks.ts';
import { lockTenant } from './tenants.ts';

const PER_ROUND = 1_000;
/** The actor that `expunged_by` and the task show. */
const TOMBSTONE = 'tombstone';
const RECENTLY_FAILED = `posthorn.tasks f
  where f.kind = 'expunge' and f.state = 'failed' and f.selection ->> 'tenant' = x.id and f.finished_at > now() - interval '1 hour'`;

export async function applyTombstones(pool: Pool, nowMs: number): Promise<void> {
  // An expunge that failed continues with a new task, but not immediately: it may fail again.
  const { rows } = await pool.query<{ kind: 'event' | 'tenant'; id: string }>(
    `select x.kind, x.id from posthorn.expunged x
      where x.applied_at is null
        and not (x.kind = 'tenant' and (exists (select from ${openExpunges('x.id')}) or exists (select from ${RECENTLY_FAILED})))
      order by x.at limit $1`,
    [PER_ROUND],
  );
  for (const { kind, id } of rows)
    await inTransaction(pool, (client) =>
      kind === 'event' ? applyToEvent(client, id) : applyToTenant(client, id, nowMs),
    );
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

async function markApplied(client: Client, kind: 'event' | 'tenant', id: string): Promise<void> {
  await client.query('update posthorn.expunged set applied_at = now() where kind = $1 and id = $2', [
    kind,
    id,
  ]);
}
