import { Type } from 'typebox';
import { auditActions } from '../../manage/audit-actions.ts';
import { PageQuery, tenantFilter, timeFilter } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Time } from '../openapi/describe.ts';

export const AuditQuery = Type.Object(
  {
    ...PageQuery,
    tenant: tenantFilter("Selects only changes of this tenant's objects."),
    actor: Type.Optional(
      Type.String({
        maxLength: 300,
        description:
          'The id of a key, `user:` and the subject of a person, "admin" or "posthorn". With the key of a tenant, "operator" selects the changes of everybody outside the tenant.',
      }),
    ),
    action: Type.Optional(Type.Enum([...auditActions])),
    object_id: Type.Optional(Type.String({ maxLength: 200 })),
    since: timeFilter('Selects changes that were made at or after this RFC 3339 time.'),
    until: timeFilter('Selects changes that were made before this RFC 3339 time.'),
  },
  { additionalProperties: false },
);

export const AuditEntrySchema = Type.Object(
  {
    id: Id('aud'),
    created_at: Time,
    action: Type.String(),
    tenant: Nullable(Type.String()),
    actor: Type.Object(
      { id: Type.String(), prefix: Nullable(Type.String()), scope: Type.String() },
      {
        description:
          'Who made the change: a key, a person who signed in, or Posthorn. A tenant sees the id "operator" instead of the operator\'s keys and people.',
      },
    ),
    object: Type.Object({ type: Type.String(), id: Nullable(Type.String()) }),
    changes: Type.Array(
      Type.Object({
        field: Type.String(),
        before: Type.Optional(Type.Unknown()),
        after: Type.Optional(Type.Unknown()),
      }),
    ),
    request_id: Type.String({ description: 'Empty if Posthorn made the change by itself.' }),
    address: Type.String({
      description:
        'The IP address of the caller. Empty if Posthorn made the change by itself, and for a tenant if the operator made it.',
    }),
  },
  {
    title: 'AuditEntry',
    examples: [
      {
        id: exampleId('aud'),
        created_at: EXAMPLE_TIME,
        action: 'endpoint.update',
        tenant: 'acme',
        actor: { id: exampleId('key'), prefix: 'phk_9wLx4f', scope: 'tenant' },
        object: { type: 'endpoint', id: exampleId('ep') },
        changes: [{ field: 'timeout_ms', before: 15_000, after: 5000 }],
        request_id: exampleId('req'),
        address: '192.0.2.1',
      },
    ],
  },
);
