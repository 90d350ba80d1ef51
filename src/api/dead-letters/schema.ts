import { type Static, Type } from 'typebox';
import { idPattern } from '../../domain/ids.ts';
import { deadReasons } from '../../domain/outcome.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { withMessage } from '../http/validation.ts';

const { event_id, ...common } = ListFilters;
const filters = { ...common, reason: Type.Optional(Type.Enum([...deadReasons])) };
export const DeadLetterQuery = Type.Object(
  { ...PageQuery, ...filters, event_id },
  { additionalProperties: false },
);
export const BulkOrder = Type.Object(
  {
    filter: Type.Object(
      {
        ...filters,
        ids: Type.Optional(
          Type.Array(
            Type.String({ pattern: idPattern('dlv'), ...withMessage('must be a delivery id (dlv_…)') }),
            {
              minItems: 1,
              maxItems: 1000,
              description: 'Only these deliveries.',
            },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only count the deliveries.' })),
    why: Type.Optional(
      Type.String({ maxLength: 500, description: 'Recorded with each discarded delivery.' }),
    ),
  },
  {
    additionalProperties: false,
    title: 'DeadLetterOrder',
    examples: [{ filter: { tenant: 'acme', type: 'order.created', reason: 'exhausted' }, dry_run: true }],
  },
);
export type BulkOrder = Static<typeof BulkOrder>;
export const Discard = Type.Object(
  { why: Type.Optional(Type.String({ maxLength: 500, description: 'Recorded with the delivery.' })) },
  { additionalProperties: false, title: 'Discard', examples: [{ why: 'The order was cancelled.' }] },
);
