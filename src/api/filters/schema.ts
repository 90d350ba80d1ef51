import { Type } from 'typebox';
import { Nullable } from '../http/validation.ts';

export const FilterTry = Type.Object(
  {
    filter: Nullable(
      Type.Record(Type.String(), Type.Unknown(), { description: 'A filter, as endpoints have it.' }),
    ),
    event: Type.Record(Type.String(), Type.Unknown(), {
      description: 'An event, as `POST /v1/events` accepts it.',
    }),
  },
  {
    additionalProperties: false,
    title: 'FilterTry',
    examples: [
      {
        filter: { 'data.amount': { $gte: 100 } },
        event: { type: 'order.created', data: { amount: 250 } },
      },
    ],
  },
);
export const FilterTried = Type.Object(
  {
    matches: Type.Boolean(),
    reason: Nullable(Type.String({ description: 'The first condition that fails.' })),
  },
  { title: 'FilterTried', examples: [{ matches: true, reason: null }] },
);
