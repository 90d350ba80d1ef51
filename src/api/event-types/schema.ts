import { Type } from 'typebox';
import { EVENT_TYPE, MAX_EVENT_TYPE_LENGTH } from '../../domain/event.ts';
import { validationModes } from '../../domain/event-type-version.ts';
import { PageQuery } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { AsShown, EXAMPLE_TIME, Ignored, Time } from '../openapi/describe.ts';

export const SchemaField = Nullable(
  Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Boolean()], {
    description: 'A JSON Schema (draft 2020-12, or draft-07 if `$schema` says so) of the events’ `data`.',
  }),
);

const ValidationField = Nullable(
  Type.Enum([...validationModes], {
    description:
      'How payloads are checked. `warn`: invalid events are flagged. `strict`: they are refused. Null: the mode of the tenant applies.',
  }),
);

export const sunsetField = (what: string) =>
  Type.String({
    format: 'date-time',
    description: `When the ${what} is planned to end. Nothing stops by itself at that time.`,
  });

const exampleSettings = {
  description: 'An order was placed.',
  schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  example: { id: 'ord_1' },
  deprecated: false,
  sunset_at: null,
  validation: null,
};

export const EventTypeBody = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 5000 })),
    schema: Type.Optional(SchemaField),
    example: Type.Optional(Type.Unknown({ description: 'A sample of `data`. It must match the schema.' })),
    deprecated: Type.Optional(Type.Boolean()),
    sunset_at: Type.Optional(Nullable(sunsetField('event type'))),
    validation: Type.Optional(ValidationField),
    name: AsShown,
    created_at: AsShown,
    latest_version: Ignored,
    updated_at: Ignored,
  },
  { additionalProperties: false, title: 'EventTypeSettings', examples: [exampleSettings] },
);

export const EventTypeSchema = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    schema: SchemaField,
    example: Type.Unknown(),
    deprecated: Type.Boolean(),
    sunset_at: Nullable(Time),
    validation: ValidationField,
    latest_version: Nullable(
      Type.String({
        description:
          'The newest active version, or the newest deprecated one if none is active. Null: there is neither.',
      }),
    ),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: 'EventType',
    examples: [
      {
        name: 'order.created',
        ...exampleSettings,
        latest_version: '2026-04-01',
        created_at: EXAMPLE_TIME,
        updated_at: EXAMPLE_TIME,
      },
    ],
  },
);
export const EventTypeName = Type.Object({
  name: Type.String({
    pattern: EVENT_TYPE.source,
    maxLength: MAX_EVENT_TYPE_LENGTH,
    description: 'The name of the event type, such as order.created.',
  }),
});
export const EventTypeList = Type.Object(PageQuery, { additionalProperties: false });
