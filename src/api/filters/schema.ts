import { Type } from 'typebox';
import { tenantFilter } from '../http/pagination.ts';
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

/** How many events a count examines. */
export const COUNTED_EVENTS = 100;

export const FilterCount = Type.Object(
  {
    filter: FilterTry.properties.filter,
    events: Type.Optional(
      Type.Array(Type.String({ maxLength: 130 }), {
        maxItems: 100,
        description: 'Event types and patterns, as endpoints have them. Default: all types.',
      }),
    ),
    tenant: tenantFilter('Selects only what belongs to this tenant.'),
  },
  {
    additionalProperties: false,
    title: 'FilterCount',
    examples: [{ filter: { 'data.amount': { $gte: 100 } }, events: ['order.*'] }],
  },
);
export const FilterCounted = Type.Object(
  {
    examined: Type.Integer({ description: 'How many events there were to examine, at most 100.' }),
    matching: Type.Integer({ description: 'How many of them the types and the filter select.' }),
  },
  { title: 'FilterCounted', examples: [{ examined: 100, matching: 12 }] },
);
