import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { idPrefixes, newId, parsePublicId, publicId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { inTransaction } from '../store/database.ts';
import { countDeliveries, type Selection } from '../store/queries/select-deliveries.ts';
import {
  cancelTask,
  createTask,
  findTask,
  listTasks,
  type TaskKind,
  type TaskView,
} from '../store/queries/tasks.ts';
import { type Caller, nameOf, tenantOf } from './auth.ts';
import type { ApiContext } from './context.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, toPage } from './pagination.ts';

const TaskList = Type.Object(
  { ...PageQuery, tenant: Type.Optional(Type.String()) },
  { additionalProperties: false },
);
type ById = { Params: { id: string } };

/** Counting ahead stops here; the exact number is known when a task has ended. */
const COUNT_LIMIT = 100_000;

export function taskRoutes({ pool }: ApiContext): FastifyPluginAsync {
  async function find(caller: Caller, text: string): Promise<TaskView> {
    const id = parsePublicId(idPrefixes.task, text);
    const task = id === null ? null : await findTask(pool, id, caller.tenant);
    if (task === null) throw new Problem('not_found', `There is no task ${text}.`);
    return task;
  }

  return async (server) => {
    server.get<{ Querystring: Static<typeof TaskList> }>(
      '/tasks',
      { schema: { querystring: TaskList } },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant } = request.query;
        const rows = await listTasks(pool, {
          tenant: tenantOf(request.caller, tenant),
          before: readCursor(idPrefixes.task, cursor),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.task, showTask);
      },
    );

    server.get<ById>('/tasks/:id', async (request) =>
      showTask(await find(request.caller, request.params.id)),
    );

    server.post<ById>('/tasks/:id/cancel', async (request) => {
      const task = await find(request.caller, request.params.id);
      const cancelled = await inTransaction(pool, async (client) => {
        if (!(await cancelTask(client, task.id))) return false;
        await request.audit.record(client, { tenant: task.tenant, objectId: request.params.id });
        return true;
      });
      if (!cancelled) request.audit.nothingChanged();
      const now = await find(request.caller, request.params.id);
      if (!cancelled && now.state !== 'cancelled')
        throw new Problem('conflict', `The task has ended already: it is ${now.state}.`);
      return showTask(now);
    });
  };
}

/** A task for the background, or (a dry run) how many deliveries it would be about. */
export async function orderTask(
  { pool, clock }: ApiContext,
  { caller, audit, params }: FastifyRequest,
  reply: FastifyReply,
  order: { kind: TaskKind; selection: Selection; why: string | null; dryRun: boolean },
): Promise<FastifyReply> {
  const { kind, selection, why, dryRun } = order;
  const total = await countDeliveries(pool, selection, COUNT_LIMIT);
  if (dryRun) {
    audit.nothingChanged();
    return reply.send({ count: total, more: total === COUNT_LIMIT });
  }
  const { tenant } = selection;
  const id = newId(clock.now());
  const publicTaskId = publicId(idPrefixes.task, id);
  const task = await inTransaction(pool, async (client) => {
    await audit.record(client, {
      tenant,
      // Of one endpoint's deliveries, or of whatever fits.
      objectId: (params as { id?: string }).id ?? publicTaskId,
      changes: [
        { field: 'task', after: publicTaskId },
        { field: 'filter', after: showSelection(selection) },
      ],
    });
    return createTask(client, { id, kind, selection, why, total, tenant, created_by: nameOf(caller) });
  });
  return reply.code(202).header('location', `/v1/tasks/${publicTaskId}`).send(showTask(task));
}

function showTask(task: TaskView) {
  return {
    id: publicId(idPrefixes.task, task.id),
    kind: task.kind,
    state: task.state,
    total: task.total,
    done: task.done,
    failed: task.failed,
    tenant: task.tenant,
    filter: showSelection(task.selection),
    why: task.why,
    error: task.error,
    created_by: task.created_by,
    created_at: task.created_at,
    updated_at: task.updated_at,
    finished_at: task.finished_at,
  };
}

function showSelection(selection: Selection) {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms));
  return {
    endpoint_id: selection.endpointId && publicId(idPrefixes.endpoint, selection.endpointId),
    status: selection.statuses,
    type: selection.type,
    reason: selection.reason,
    since: time(selection.since),
    until: time(selection.until),
    ids: selection.ids?.map((id) => publicId(idPrefixes.delivery, id)) ?? null,
  };
}
