import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { firstIdAt, idPrefixes } from '../../domain/ids.ts';
import { readTime } from '../../ingest/index.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Tasks } from '../../manage/tasks.ts';
import type { Pool } from '../../postgres/database.ts';
import { listTasks } from '../../postgres/queries/tasks.ts';
import { earlierBound } from '../http/id-filters.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Page } from '../openapi/describe.ts';
import { TaskId, TaskList, TaskSchema } from './schema.ts';
import { showTask } from './view.ts';

type ById = { Params: Static<typeof TaskId> };

export function taskRoutes(tasks: Tasks, pool: Pool): FastifyPluginAsync {
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
        const { limit = DEFAULT_LIMIT, cursor, tenant, state = null } = request.query;
        const since = readTime('since', request.query.since);
        const until = readTime('until', request.query.until);
        const rows = await listTasks(pool, {
          tenant: visibleTenant(request.caller, tenant),
          state,
          from: since === null ? null : firstIdAt(since),
          before: earlierBound(readCursor(idPrefixes.task, cursor), until === null ? null : firstIdAt(until)),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.task, (task) => showTask(task, request.caller));
      },
    );

    server.get<ById>(
      '/tasks/:id',
      {
        schema: {
          operationId: 'getTask',
          summary: 'Show a task and its progress',
          tags: ['Tasks'],
          params: TaskId,
          response: { 200: TaskSchema },
        },
      },
      async ({ caller, params }) =>
        showTask(await tasks.get(caller, readObjectId('task', params.id)), caller),
    );

    server.post<ById>(
      '/tasks/:id/cancel',
      {
        schema: {
          operationId: 'cancelTask',
          summary: 'Cancel a task',
          description: 'Deliveries that it has already changed stay changed.',
          tags: ['Tasks'],
          params: TaskId,
          response: { 200: TaskSchema },
          problems: { conflict: 'The task has already ended, or it deletes a tenant.' },
        },
      },
      async (request) => {
        const task = await tasks.cancel(request, readObjectId('task', request.params.id));
        return showTask(task, request.caller);
      },
    );
  };
}
