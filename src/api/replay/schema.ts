import { Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { idPattern } from '../../domain/ids.ts';
import { ListFilters } from '../http/pagination.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { Id } from '../openapi/describe.ts';

const Statuses = Type.Union([
  Type.Enum([...deliveryStatuses]),
  Type.Array(Type.Enum([...deliveryStatuses]), { minItems: 1, maxItems: deliveryStatuses.length }),
]);
export const EventReplay = Type.Object(
  {
    endpoint_ids: Type.Optional(
      Type.Array(Type.String({ pattern: idPattern('ep'), ...withMessage('must be an endpoint id (ep_…)') }), {
        minItems: 1,
        maxItems: 1000,
      }),
    ),
    status: Type.Optional(Statuses),
    dry_run: Type.Optional(Type.Boolean({ description: 'True: counts the deliveries, and sends nothing.' })),
  },
  { additionalProperties: false, title: 'EventReplay', examples: [{ status: ['dead', 'skipped'] }] },
);
export const Replayed = Type.Object(
  {
    deliveries: Type.Integer({ description: 'Number of deliveries that are sent again, or would be.' }),
    skipped: Type.Integer({
      description:
        'Number of deliveries that are not sent, because their endpoint is disabled or was deleted.',
    }),
    task_id: Nullable(Id('task')),
  },
  { title: 'Replayed', examples: [{ deliveries: 2, skipped: 0, task_id: null }] },
);
export const EndpointReplay = Type.Object(
  {
    since: ListFilters.since,
    until: ListFilters.until,
    status: Type.Optional(Statuses),
    dry_run: Type.Optional(Type.Boolean({ description: 'True: only counts the deliveries.' })),
  },
  {
    additionalProperties: false,
    title: 'EndpointReplay',
    examples: [{ since: '2027-01-31T00:00:00Z', status: ['dead', 'skipped'] }],
  },
);
