import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { idPrefixes, newId, parsePublicId, publicId } from '../../domain/ids.ts';
import { deadReasons } from '../../domain/outcome.ts';
import { Problem } from '../../domain/problem.ts';
import { inTransaction } from '../../postgres/database.ts';
import { countDeliveries, type Selection } from '../../postgres/queries/select-deliveries.ts';
import {
  cancelTask,
  createTask,
  findTask,
  listTasks,
  type TaskKind,
  type TaskView,
  taskStates,
} from '../../postgres/queries/tasks.ts';
import type { ApiContext } from '../dependencies.ts';
import { type Caller, nameOf, tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Page, type Shown, Time } from '../openapi/describe.ts';

const TaskList = Type.Object({ ...PageQuery, tenant: ListFilters.tenant }, { additionalProperties: false });
const TaskId = idParams('task', 'task');
type ById = { Params: Static<typeof TaskId> };

export const TaskSchema = Type.Object(
  {
    id: Id('task'),
    kind: Type.Enum(['replay', 'discard']),
    state: Type.Enum([...taskStates]),
    total: Type.Integer({
      description:
        'How many deliveries it is about. Counted among the newest 100,000 at first, exact when it has ended.',
    }),
    done: Type.Integer(),
    failed: Type.Integer({
      description: 'Could not be done, for instance because the endpoint is disabled.',
    }),
    tenant: Nullable(Type.String()),
    filter: Type.Object({
      endpoint_id: Nullable(Id('ep')),
      status: Type.Array(Type.Enum([...deliveryStatuses])),
      type: Nullable(Type.String()),
      reason: Nullable(Type.Enum([...deadReasons])),
      since: Nullable(Time),
      until: Nullable(Time),
      ids: Nullable(Type.Array(Id('dlv'))),
    }),
    why: Nullable(Type.String()),
    error: Nullable(Type.String({ description: 'Why it failed, or why some of them could not be done.' })),
    created_by: Type.String({ description: 'The key that ordered it.' }),
    created_at: Time,
    updated_at: Time,
    finished_at: Nullable(Time),
  },
  {
    title: 'Task',
    examples: [
      {
        id: exampleId('task'),
        kind: 'replay',
        state: 'queued',
        total: 120,
        done: 0,
        failed: 0,
        tenant: 'acme',
        filter: {
          endpoint_id: exampleId('ep'),
          status: ['dead'],
          type: null,
          reason: null,
          since: null,
          until: EXAMPLE_TIME,
          ids: null,
        },
        why: null,
        error: null,
        created_by: exampleId('key'),
        created_at: EXAMPLE_TIME,
        updated_at: EXAMPLE_TIME,
        finished_at: null,
      },
    ],
  },
);
/** The answer to a dry run. */
export const CountSchema = Type.Object(
  {
    count: Type.Integer(),
    more: Type.Boolean({ description: 'There may be more: the newest 100,000 were looked at.' }),
  },
  { title: 'Count', examples: [{ count: 120, more: false }] },
);

/** Counting ahead looks at no more than these, of each place; the exact number is known when a task has ended. */
const LOOK_AT_MOST = 100_000;

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
      {
        schema: {
          operationId: 'listTasks',
          summary: 'List tasks',
          tags: ['Tasks'],
          querystring: TaskList,
          response: { 200: Page(TaskSchema) },
        },
      },
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

    server.get<ById>(
      '/tasks/:id',
      {
        schema: {
          operationId: 'getTask',
          summary: 'How far a task is',
          tags: ['Tasks'],
          params: TaskId,
          response: { 200: TaskSchema },
        },
      },
      async (request) => showTask(await find(request.caller, request.params.id)),
    );

    server.post<ById>(
      '/tasks/:id/cancel',
      {
        schema: {
          operationId: 'cancelTask',
          summary: 'Cancel a task',
          description: 'What it has done already stays done.',
          tags: ['Tasks'],
          params: TaskId,
          response: { 200: TaskSchema },
          problems: { conflict: 'The task has ended already.' },
        },
      },
      async (request) => {
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
      },
    );
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
  const counted = await countDeliveries(pool, selection, LOOK_AT_MOST);
  if (dryRun) {
    audit.nothingChanged();
    return reply.send(counted);
  }
  const { count: total } = counted;
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

function showTask(task: TaskView): Shown<typeof TaskSchema> {
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
    error: task.error ?? whyShort(task),
    created_by: task.created_by,
    created_at: task.created_at,
    updated_at: task.updated_at,
    finished_at: task.finished_at,
  };
}

/** It has ended without having done all. */
function whyShort({ finished_at, failed, failed_off: off }: TaskView): string | null {
  if (finished_at === null || failed === 0) return null;
  const others = failed - off;
  const reasons: string[] = [];
  if (off === 1) reasons.push('1 belongs to an endpoint that is disabled or deleted');
  if (off > 1) reasons.push(`${off} belong to endpoints that are disabled or deleted`);
  if (others > 0)
    reasons.push(`${others} ${others === 1 ? 'was' : 'were'} dealt with by somebody else meanwhile`);
  return `${reasons.join('; ')}.`;
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
