import { Type } from 'typebox';
import type { ChangeKind } from '../../catalogue/compare-schemas.ts';
import { versionStatuses } from '../../domain/event-type-version.ts';
import { Nullable } from '../http/validation.ts';
import { AsShown, EXAMPLE_TIME, Ignored, Time } from '../openapi/describe.ts';
import { EventTypeName, SchemaField, sunsetField } from './schema.ts';

const StatusField = Type.Enum([...versionStatuses], {
  description:
    '`draft`: not published yet. `active`: in use. `deprecated`: still in use, to be replaced. `retired`: no longer published.',
});

const exampleSettings = {
  description: 'An order was placed.',
  changelog: 'Adds the currency.',
  schema: {
    type: 'object',
    required: ['id'],
    properties: { id: { type: 'string' }, currency: { type: 'string' } },
  },
  example: { id: 'ord_1', currency: 'EUR' },
  status: 'active' as const,
  sunset_at: null,
};

export const EventTypeVersionBody = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 5000 })),
    changelog: Type.Optional(
      Type.String({ maxLength: 5000, description: 'What has changed since the version before.' }),
    ),
    schema: Type.Optional(SchemaField),
    example: Type.Optional(Type.Unknown({ description: 'A sample of `data`. It must match the schema.' })),
    status: Type.Optional(StatusField),
    sunset_at: Type.Optional(Nullable(sunsetField('version'))),
    event_type: AsShown,
    version: AsShown,
    created_at: AsShown,
    latest: Ignored,
    compatibility: Ignored,
    updated_at: Ignored,
  },
  { additionalProperties: false, title: 'EventTypeVersionSettings', examples: [exampleSettings] },
);

export const EventTypeVersionSchema = Type.Object(
  {
    event_type: Type.String(),
    version: Type.String(),
    description: Type.String(),
    changelog: Type.String(),
    schema: SchemaField,
    example: Type.Unknown(),
    status: StatusField,
    sunset_at: Nullable(Time),
    latest: Type.Boolean({ description: 'True for the version that events without `schema_version` get.' }),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: 'EventTypeVersion',
    examples: [
      {
        event_type: 'order.created',
        version: '2026-04-01',
        ...exampleSettings,
        latest: true,
        created_at: EXAMPLE_TIME,
        updated_at: EXAMPLE_TIME,
      },
    ],
  },
);

export const EventTypeVersionPage = Type.Object(
  {
    data: Type.Array(EventTypeVersionSchema),
    latest: Nullable(
      Type.String({
        description:
          'The newest active version, or the newest deprecated one if none is active. Events without `schema_version` get it.',
      }),
    ),
    next_cursor: Type.Null({ description: 'There is one page only.' }),
  },
  { title: 'EventTypeVersionList' },
);

export const VersionParams = Type.Object({
  ...EventTypeName.properties,
  version: Type.String({ description: 'The name of the version: a date such as 2026-04-01, or v2.' }),
});

const changeKinds = [
  'added',
  'removed',
  'renamed',
  'type_changed',
  'type_narrowed',
  'required',
  'optional',
  'enum_narrowed',
  'enum_widened',
  'tightened',
  'loosened',
  'undecided',
] as const satisfies ChangeKind[];

const difference = {
  verdict: Type.Enum(['additive', 'breaking']),
  changes: Type.Array(
    Type.Object({
      path: Type.String({
        description: 'The path that has changed, such as `lines[].sku`. Empty: the payload itself.',
      }),
      kind: Type.Enum([...changeKinds]),
      breaking: Type.Boolean(),
      message: Type.String(),
    }),
  ),
  advice: Type.Array(Type.String(), { description: 'How to make the changes safely.' }),
};
const exampleDifference = {
  verdict: 'additive' as const,
  changes: [{ path: 'currency', kind: 'added' as const, breaking: false, message: 'was added' }],
  advice: ['Publish it at once: no receiver of the old version breaks.'],
};
export const VersionDiff = Type.Object(difference, { title: 'VersionDiff', examples: [exampleDifference] });

const Compatibility = Type.Object(
  { against: Type.String({ description: 'The version that was created before.' }), ...difference },
  { title: 'Compatibility', examples: [{ against: '2025-10-01', ...exampleDifference }] },
);

export const EventTypeVersionStored = Type.Object(
  {
    ...EventTypeVersionSchema.properties,
    compatibility: Nullable(Compatibility),
  },
  { title: 'EventTypeVersionStored' },
);

export const EventTypeVersionChecked = Type.Object(
  {
    refusal: Nullable(
      Type.String({ description: 'Why `PUT` would answer 409. Null: it would store the version.' }),
    ),
    compatibility: Nullable(Compatibility),
  },
  {
    title: 'EventTypeVersionChecked',
    examples: [{ refusal: null, compatibility: { against: '2025-10-01', ...exampleDifference } }],
  },
);

export const VersionDiffParams = Type.Object({
  ...VersionParams.properties,
  other: Type.String({ description: 'The version to compare with.' }),
});
