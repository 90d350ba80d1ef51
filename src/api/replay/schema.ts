import { Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { idPattern } from '../../domain/ids.ts';
import { ListFilters } from '../http/pagination.ts';
import { withMessage } from '../http/validation.ts';

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
  },
  { additionalProperties: false, title: 'EventReplay', examples: [{ status: ['dead', 'skipped'] }] },
);
export const Replayed = Type.Object(
  {
    deliveries: Type.Integer({ description: 'Number of deliveries that are sent again.' }),
    skipped: Type.Integer({
      description:
        'Number of deliveries that are not sent, because their endpoint is disabled or was deleted.',
    }),
  },
  { title: 'Replayed', examples: [{ deliveries: 2, skipped: 0 }] },
);
export const EndpointReplay = Type.Object(
  {
    since: ListFilters.since,
    until: ListFilters.until,
    status: Type.Optional(Statuses),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only count the deliveries.' })),
  },
  {
    additionalProperties: false,
    title: 'EndpointReplay',
    examples: [{ since: '2027-01-31T00:00:00Z', status: ['dead', 'skipped'] }],
  },
);
