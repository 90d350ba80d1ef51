/** Events that are only in the archive: where they are, and how to bring them back. */
import { dayOf, endOfDay, isDay, partNameOf, startOfDay } from '../domain/archive.ts';
import type { Clock } from '../domain/clock.ts';
import { idPrefixes, newId, publicId, timeOfId, type Uuid } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { inTransaction, type Pool, type Queryable } from '../postgres/database.ts';
import { findArchivedDay, hasArchivedDay } from '../postgres/queries/archive.ts';
import { WHOLE_TENANT } from '../postgres/queries/expunge-tenant.ts';
import { createTask, type TaskView } from '../postgres/queries/tasks.ts';
import { type Actor, type Caller, recordedNameOf } from './caller.ts';
import { notFound } from './object-ids.ts';

/** The problem to throw if the database has no such event: `archived` if the events of its time are in the archive. */
export async function eventNotFound(client: Queryable, caller: Caller, id: Uuid): Promise<Problem> {
  const found = await findArchivedDay(client, id, caller.tenant);
  if (found === null) return notFound('event', id);
  const { archive, day, part } = found;
  const where = caller.scope === 'admin' ? ` at ${archive}/${partNameOf({ kind: 'events', day, part })}` : '';
  return new Problem(
    'archived',
    `The events of ${day} are in the archive${where}. POST /v1/archive/restore (admin) brings ${publicId(idPrefixes.event, id)} back.`,
  );
}

export interface RestoreOrder {
  readonly eventId: Uuid | null;
  readonly day: string | null;
}

export interface ArchiveDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly hasArchive: boolean;
}

export class Archive {
  readonly #dependencies: ArchiveDependencies;

  constructor(dependencies: ArchiveDependencies) {
    this.#dependencies = dependencies;
  }

  /** Creates the task that brings a day or an event back. The archive process runs it. */
  async restore({ caller, audit }: Actor, { eventId, day }: RestoreOrder): Promise<TaskView> {
    const { pool, clock, hasArchive } = this.#dependencies;
    if ((eventId === null) === (day === null))
      throw invalidField('day', 'give either `event_id` or `day`, and not both');
    if (day !== null && !isDay(day)) throw invalidField('day', 'must be a day such as 2026-11-15');
    const wanted = day ?? dayOf(timeOfId(eventId!));
    if (!isDay(wanted) || !(await hasArchivedDay(pool, wanted)))
      throw new Problem('not_found', `Nothing of ${wanted} is in the archive.`);
    if (!hasArchive)
      throw new Problem('conflict', 'This server has no archive: POSTHORN_ARCHIVE_URL is not set.');
    const id = newId(clock.now());
    const what = eventId === null ? wanted : publicId(idPrefixes.event, eventId);
    return inTransaction(pool, async (client) => {
      await audit.record(client, {
        action: 'archive.restore',
        tenant: null,
        objectId: what,
        changes: [{ field: 'task', after: publicId(idPrefixes.task, id) }],
      });
      return createTask(client, {
        id,
        kind: 'restore',
        selection: { ...WHOLE_TENANT, eventId, since: startOfDay(wanted), until: endOfDay(wanted) },
        why: what,
        total: 0,
        tenant: null,
        created_by: recordedNameOf(caller),
      });
    });
  }
}
