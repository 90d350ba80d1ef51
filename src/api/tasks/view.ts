import type { FastifyReply } from 'fastify';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { type Caller, showRecordedName } from '../../manage/caller.ts';
import { type OrderResult, selectionFields } from '../../manage/tasks.ts';
import type { TaskView } from '../../postgres/queries/tasks.ts';
import type { Shown } from '../openapi/describe.ts';
import type { TaskSchema } from './schema.ts';

/** Answers with the new task, or with the count of a dry run. */
export function sendOrder(reply: FastifyReply, result: OrderResult): FastifyReply {
  if ('counted' in result) return reply.send(result.counted);
  const task = showTask(result.task, reply.request.caller);
  return reply.code(202).header('location', `/v1/tasks/${task.id}`).send(task);
}

export function showTask(task: TaskView, reader: Caller): Shown<typeof TaskSchema> {
  return {
    id: publicId(idPrefixes.task, task.id),
    kind: task.kind,
    state: task.state,
    total: task.total,
    done: task.done,
    failed: task.failed,
    left_out: task.failed_off,
    tenant: task.tenant,
    filter: selectionFields(task.selection),
    why: task.why,
    error: task.error ?? explainFailures(task),
    created_by: showRecordedName(task.created_by, reader),
    created_at: task.created_at,
    updated_at: task.updated_at,
    finished_at: task.finished_at,
  };
}

/** Why a task that has ended could not change all of its deliveries. */
function explainFailures({ finished_at, failed, failed_off: off }: TaskView): string | null {
  if (finished_at === null || failed === 0) return null;
  const others = failed - off;
  const reasons: string[] = [];
  if (off === 1) reasons.push('1 belongs to an endpoint that is disabled or deleted');
  if (off > 1) reasons.push(`${off} belong to endpoints that are disabled or deleted`);
  if (others > 0)
    reasons.push(
      `${others} ${others === 1 ? 'was' : 'were'} changed by another request or by a worker meanwhile, or lost the payload`,
    );
  return `${reasons.join('; ')}.`;
}
