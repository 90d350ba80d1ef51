import { Type } from 'typebox';
import { idPrefixes } from '../../domain/ids.ts';
import { PageQuery, tenantFilter, timeFilter } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Page, Time } from '../openapi/describe.ts';

export const SchemaFailureSchema = Type.Object(
  {
    created_at: Time,
    tenant: Type.String(),
    event_type: Type.String(),
    version: Nullable(Type.String({ description: 'The version that it was checked against.' })),
    result: Type.Enum(['flagged', 'refused']),
    event_id: Nullable(Id(idPrefixes.event, 'Null: the event was refused, and is not stored.')),
    path: Type.String({ description: 'The failing path, such as `data.lines[0].sku`.' }),
    message: Type.String(),
  },
  {
    title: 'SchemaFailure',
    examples: [
      {
        created_at: EXAMPLE_TIME,
        tenant: 'acme',
        event_type: 'order.created',
        version: '2026-04-01',
        result: 'flagged',
        event_id: exampleId(idPrefixes.event),
        path: 'data.currency',
        message: 'is required',
      },
    ],
  },
);
export const SchemaFailurePage = Page(SchemaFailureSchema);
export const SchemaFailureList = Type.Object(
  {
    tenant: tenantFilter('Selects only what belongs to this tenant.'),
    since: timeFilter('Selects payloads that were published at or after this RFC 3339 time.'),
    until: timeFilter('Selects payloads that were published before this RFC 3339 time.'),
    ...PageQuery,
  },
  { additionalProperties: false },
);

export const EventTypeTry = Type.Object(
  {
    data: Type.Unknown({ description: 'The payload to check.' }),
    from_version: Type.Optional(
      Nullable(Type.String({ description: 'The version that it is written in. Default: the latest.' })),
    ),
    to_version: Type.Optional(
      Nullable(Type.String({ description: 'Posthorn also converts the payload to this version.' })),
    ),
  },
  {
    additionalProperties: false,
    title: 'EventTypeTry',
    examples: [{ data: { id: 'ord_1', currency: 'EUR' } }],
  },
);
export const EventTypeTried = Type.Object(
  {
    valid: Type.Boolean(),
    version: Nullable(Type.String({ description: 'The version that it was checked against.' })),
    errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })),
    converted: Type.Unknown({ description: 'The payload in `to_version`. Null: there is none.' }),
    conversion_error: Nullable(Type.String({ description: 'Why it was not converted.' })),
  },
  {
    title: 'EventTypeTried',
    examples: [
      { valid: true, version: '2026-04-01', errors: [], converted: { id: 'ord_1' }, conversion_error: null },
    ],
  },
);
