import { Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { deadReasons } from '../../domain/outcome.ts';
import { taskKinds, taskStates } from '../../postgres/queries/tasks.ts';
import { ListFilters, PageQuery, timeFilter } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';

export const TaskList = Type.Object(
  {
    ...PageQuery,
    tenant: ListFilters.tenant,
    state: Type.Optional(Type.Enum([...taskStates])),
    since: timeFilter('Selects tasks that were created at or after this RFC 3339 time.'),
    until: timeFilter('Selects tasks that were created before this RFC 3339 time.'),
  },
  { additionalProperties: false },
);
export const TaskId = idParams('task', 'task');

export const TaskSchema = Type.Object(
  {
    id: Id('task'),
    kind: Type.Enum([...taskKinds]),
    state: Type.Enum([...taskStates]),
    total: Type.Integer({
      description:
        'How many deliveries it changes. An estimate from the newest 100,000 at first, exact when it has ended.',
    }),
    done: Type.Integer(),
    failed: Type.Integer({
      description: 'Deliveries that could not be changed, for instance because their endpoint is disabled.',
    }),
    left_out: Type.Integer({
      description: 'How many of the failed ones belong to an endpoint that is disabled or was deleted.',
    }),
    tenant: Nullable(Type.String()),
    filter: Type.Object({
      endpoint_id: Nullable(Id('ep')),
      event_id: Nullable(Id('evt')),
      status: Type.Array(Type.Enum([...deliveryStatuses])),
      type: Nullable(Type.String()),
      reason: Nullable(Type.Enum([...deadReasons])),
      since: Nullable(Time),
      until: Nullable(Time),
      ids: Nullable(Type.Array(Id('dlv'))),
    }),
    why: Nullable(Type.String()),
    error: Nullable(
      Type.String({ description: 'Why it failed, or why some deliveries could not be changed.' }),
    ),
    created_by: Type.String({
      description:
        "Who created it: the id of a key, `user:` and the subject of a person, or `admin`. A tenant sees `operator` instead of the operator's keys and people.",
    }),
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
        left_out: 0,
        tenant: 'acme',
        filter: {
          endpoint_id: exampleId('ep'),
          event_id: null,
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
    more: Type.Boolean({ description: 'There may be more: only the newest 100,000 were examined.' }),
    left_out: Type.Integer({
      description: 'How many of them a replay leaves out, because their endpoint is disabled or was deleted.',
    }),
  },
  { title: 'Count', examples: [{ count: 120, more: false, left_out: 3 }] },
);
