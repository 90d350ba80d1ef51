import { Type } from 'typebox';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { RateLimitSchema } from '../http/rate-limit.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';

const scopes = ['admin', 'tenant', 'read'] as const;
const keyFields = {
  id: Id('key'),
  scope: Type.Enum([...scopes]),
  tenant: Nullable(Type.String({ description: 'The only tenant that the key may use. Null: all tenants.' })),
  description: Type.String(),
  prefix: Type.String({ description: 'The first characters of the key, to recognize it by.' }),
  created_at: Time,
  last_used_at: Nullable(Time),
  rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
};
const exampleKey = {
  id: exampleId('key'),
  scope: 'tenant',
  tenant: 'acme',
  description: 'checkout service',
  prefix: 'phk_9wLx4f',
  created_at: EXAMPLE_TIME,
  last_used_at: null,
  rate_limit: null,
};
export const KeySchema = Type.Object(keyFields, { title: 'Key', examples: [exampleKey] });
export const CreatedKey = Type.Object(
  { ...keyFields, key: Type.String({ description: 'The key itself. It is shown here and never again.' }) },
  {
    title: 'CreatedKey',
    examples: [{ ...exampleKey, key: 'phk_9wLx4f…' }],
  },
);
export const KeyId = idParams('key', 'key');

export const NewKey = Type.Object(
  {
    scope: Type.Enum([...scopes]),
    tenant: Type.Optional(
      Type.String({
        description: 'Required for a tenant key, optional for a read key, not allowed for an admin key.',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 200 })),
    rate_limit: Type.Optional(Nullable(RateLimitSchema)),
  },
  {
    additionalProperties: false,
    title: 'NewKey',
    examples: [{ scope: 'tenant', tenant: 'acme', description: 'checkout service' }],
  },
);
export const KeyList = Type.Object(
  { ...PageQuery, tenant: ListFilters.tenant },
  { additionalProperties: false },
);

export const CurrentKey = Type.Object(
  {
    id: Nullable(Id('key', 'Null: the admin key of the configuration.')),
    scope: keyFields.scope,
    tenant: keyFields.tenant,
    prefix: keyFields.prefix,
    capabilities: Type.Object({
      inbox: Type.Boolean({ description: 'Whether there is a built-in receiver.' }),
    }),
  },
  {
    title: 'CurrentKey',
    examples: [
      {
        id: exampleId('key'),
        scope: 'tenant',
        tenant: 'acme',
        prefix: 'phk_9wLx4f',
        capabilities: { inbox: true },
      },
    ],
  },
);
