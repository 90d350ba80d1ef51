import { Type } from 'typebox';
import { auditActions } from '../../manage/audit-actions.ts';
import { PageQuery, tenantFilter, timeFilter } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Time } from '../openapi/describe.ts';

export const AuditQuery = Type.Object(
  {
    ...PageQuery,
    tenant: tenantFilter("About this tenant's objects."),
    actor: Type.Optional(
      Type.String({
        maxLength: 300,
        description: 'The id of a key, `user:` and the subject of a person, "admin" or "posthorn".',
      }),
    ),
    action: Type.Optional(Type.Enum([...auditActions])),
    object_id: Type.Optional(Type.String({ maxLength: 200 })),
    since: timeFilter('At or after this RFC 3339 time.'),
    until: timeFilter('Before this RFC 3339 time.'),
  },
  { additionalProperties: false },
);

export const AuditEntrySchema = Type.Object(
  {
    id: Id('aud'),
    created_at: Time,
    action: Type.String(),
    tenant: Nullable(Type.String()),
    actor: Type.Object({ id: Type.String(), prefix: Nullable(Type.String()), scope: Type.String() }),
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
      description: 'The IP address of the caller. Empty if Posthorn made the change by itself.',
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
