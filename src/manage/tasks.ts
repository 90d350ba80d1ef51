import type { Clock } from '../domain/clock.ts';
import { idPrefixes, newId, publicId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { inTransaction, type Pool, type Queryable } from '../postgres/database.ts';
import { type Counted, countSelected, type Selection } from '../postgres/queries/select-deliveries.ts';
import {
  cancelTask,
  countOpenTasks,
  createTask,
  findTask,
  lockTasksOf,
  type TaskKind,
  type TaskView,
} from '../postgres/queries/tasks.ts';
import type { AuditAction } from './audit-actions.ts';
import { type Actor, type Caller, recordedNameOf } from './caller.ts';
import { notFound } from './object-ids.ts';

/** A change of many deliveries, made in the background. */
export interface TaskOrder {
  readonly kind: TaskKind;
  readonly selection: Selection;
  /** Recorded with each delivery that is discarded. */
  readonly why: string | null;
  /** Only count the deliveries, and change nothing. */
  readonly dryRun: boolean;
}

/** `objectId` is what the audit log says was changed, if it is not the task. */
interface AuditedChange {
  readonly action: AuditAction;
  readonly objectId?: string;
}

export type OrderResult = { readonly task: TaskView } | { readonly counted: Counted };

/** How many rows of each table are counted before a task starts. The exact total is known when the task has ended. */
const MAX_COUNTED = 100_000;
const RETRY_AFTER_SECONDS = 5;

export interface TasksDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  /** How many tasks of a tenant may be queued or running. */
  readonly maxTasksPerTenant: number;
}

/** Background tasks over many deliveries. A worker runs them (`settle/task-runner.ts`). */
export class Tasks {
  readonly #pool: Pool;
  readonly #clock: Clock;

  readonly #maxOpenPerTenant: number;

  constructor(dependencies: TasksDependencies) {
    this.#pool = dependencies.pool;
    this.#clock = dependencies.clock;
    this.#maxOpenPerTenant = dependencies.maxTasksPerTenant;
  }

  async get(caller: Caller, id: Uuid): Promise<TaskView> {
    const task = await findTask(this.#pool, id, caller.tenant);
    if (task === null) throw notFound('task', id);
    return task;
  }

  /** Creates the task, or counts the deliveries of a dry run. */
  async request(actor: Actor, { dryRun, ...order }: TaskOrder, audited: AuditedChange): Promise<OrderResult> {
    if (!dryRun) return { task: (await this.create(actor, order, audited)).task };
    return { counted: await this.count(actor, order.selection) };
  }

  /** A dry run: counts what a task would do, and changes nothing. */
  count({ audit }: Actor, selection: Selection): Promise<Counted> {
    audit.markUnchanged();
    return countSelected(this.#pool, selection, MAX_COUNTED);
  }

  /** Creates the task. Returns it with an estimate of its deliveries. Throws `rate_limited` if the tenant has too many tasks. */
  async create(
    { caller, audit }: Actor,
    { kind, selection, why }: Omit<TaskOrder, 'dryRun'>,
    { action, objectId }: AuditedChange,
  ): Promise<{ task: TaskView; counted: Counted }> {
    const { tenant } = selection;
    // Check this before the count, which takes longer.
    await this.#checkOpenTasks(this.#pool, tenant);
    const counted = await countSelected(this.#pool, selection, MAX_COUNTED);
    const id = newId(this.#clock.now());
    const publicTaskId = publicId(idPrefixes.task, id);
    const task = await inTransaction(this.#pool, async (client) => {
      if (tenant !== null) await lockTasksOf(client, tenant);
      await this.#checkOpenTasks(client, tenant);
      await audit.record(client, {
        action,
        tenant,
        objectId: objectId ?? publicTaskId,
        changes: [
          { field: 'task', after: publicTaskId },
          { field: 'filter', after: selectionFields(selection) },
        ],
      });
      return createTask(client, {
        id,
        kind,
        selection,
        why,
        total: counted.count,
        tenant,
        created_by: recordedNameOf(caller),
      });
    });
    return { task, counted };
  }

  async #checkOpenTasks(client: Queryable, tenant: string | null): Promise<void> {
    const max = this.#maxOpenPerTenant;
    if (tenant === null || (await countOpenTasks(client, tenant, max)) < max) return;
    throw new Problem(
      'rate_limited',
      `The tenant "${tenant}" has ${max} tasks that are queued or running, which is the limit (POSTHORN_MAX_TASKS_PER_TENANT). Wait until one has ended, or cancel one.`,
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }

  /**
   * Cancels the task. Deliveries that it has changed stay changed. Throws `conflict` if it deletes a tenant, or if it has
   * ended other than by a cancel.
   */
  async cancel({ caller, audit }: Actor, id: Uuid): Promise<TaskView> {
    const { tenant, kind } = await this.get(caller, id);
    if (kind === 'expunge')
      throw new Problem(
        'conflict',
        'The deletion of a tenant cannot be cancelled: a part of its data is gone.',
      );
    if (kind === 'archive')
      throw new Problem(
        'conflict',
        'An export to the archive cannot be cancelled: it would only start again.',
      );
    const isCancelled = await inTransaction(this.#pool, async (client) => {
      if (!(await cancelTask(client, id))) return false;
      await audit.record(client, {
        action: 'task.cancel',
        tenant,
        objectId: publicId(idPrefixes.task, id),
      });
      return true;
    });
    if (!isCancelled) audit.markUnchanged();
    const task = await this.get(caller, id);
    if (!isCancelled && task.state !== 'cancelled')
      throw new Problem('conflict', `The task has already ended: it is ${task.state}.`);
    return task;
  }
}

/** A selection under the names of the API. */
export function selectionFields(selection: Selection) {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms));
  return {
    endpoint_id: selection.endpointId && publicId(idPrefixes.endpoint, selection.endpointId),
    event_id: selection.eventId ? publicId(idPrefixes.event, selection.eventId) : null,
    status: selection.statuses,
    type: selection.type,
    reason: selection.reason,
    since: time(selection.since),
    until: time(selection.until),
    ids: selection.ids?.map((id) => publicId(idPrefixes.delivery, id)) ?? null,
  };
}
