import { type Static, Type } from 'typebox';
import { idPattern } from '../../domain/ids.ts';
import { deadReasons } from '../../domain/outcome.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { withMessage } from '../http/validation.ts';

const filters = {
  ...ListFilters,
  status: Type.Optional(
    Type.Enum(['dead'], { description: 'Leaves out dead letters that are being replayed.' }),
  ),
  reason: Type.Optional(Type.Enum([...deadReasons])),
};
export const DeadLetterQuery = Type.Object({ ...PageQuery, ...filters }, { additionalProperties: false });
export const BulkOrder = Type.Object(
  {
    filter: Type.Object(
      {
        ...filters,
        status: Type.Optional(
          Type.Enum(['dead'], { description: 'Tasks never change dead letters that are being replayed.' }),
        ),
        ids: Type.Optional(
          Type.Array(
            Type.String({ pattern: idPattern('dlv'), ...withMessage('must be a delivery id (dlv_…)') }),
            {
              minItems: 1,
              maxItems: 1000,
              description: 'Selects only these deliveries.',
            },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'True: only counts the deliveries.' })),
    why: Type.Optional(
      Type.String({ maxLength: 500, description: 'Posthorn records it with each discarded delivery.' }),
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
  {
    why: Type.Optional(
      Type.String({ maxLength: 500, description: 'Posthorn records it with the delivery.' }),
    ),
  },
  { additionalProperties: false, title: 'Discard', examples: [{ why: 'The order was cancelled.' }] },
);
