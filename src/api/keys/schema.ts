import { Type } from 'typebox';
import { accessScopes } from '../../domain/access-scopes.ts';
import { ADDRESS_RANGE_RULE } from '../../domain/address-range.ts';
import { TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import { RFC3339, TIME_RULE } from '../../domain/time.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { RateLimitSchema } from '../http/rate-limit.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { AsShown, EXAMPLE_TIME, exampleId, Id, Ignored, idParams, Time } from '../openapi/describe.ts';

const scopes = ['admin', 'tenant', 'read'] as const;
const Scopes = Type.Array(Type.Enum([...accessScopes]), {
  minItems: 1,
  maxItems: accessScopes.length,
  uniqueItems: true,
});
const SCOPES = 'The only things that the key may do, within `scope`. Null: everything that `scope` allows.';
const keyFields = {
  id: Id('key'),
  scope: Type.Enum([...scopes]),
  scopes: Nullable(Scopes),
  tenant: Nullable(Type.String({ description: 'The only tenant that the key may use. Null: all tenants.' })),
  description: Type.String(),
  prefix: Type.String({ description: 'The first characters of the key, to recognize it by.' }),
  created_at: Time,
  last_used_at: Nullable(Time),
  rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
  expires_at: Nullable(Time),
  allowed_ips: Nullable(Type.Array(Type.String({ description: 'A CIDR range.' }))),
};
const exampleKey = {
  id: exampleId('key'),
  scope: 'tenant',
  scopes: ['events:publish'],
  tenant: 'acme',
  description: 'checkout service',
  prefix: 'phk_9wLx4f',
  created_at: EXAMPLE_TIME,
  last_used_at: null,
  rate_limit: null,
  expires_at: EXAMPLE_TIME,
  allowed_ips: ['203.0.113.0/24'],
};

/** The control plane also checks the numbers. */
const ADDRESS_RANGE = '^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$';

const restrictions = {
  scopes: Type.Optional(
    Nullable(
      Type.Array(Type.Enum([...accessScopes]), {
        minItems: 1,
        maxItems: accessScopes.length,
        uniqueItems: true,
        description: SCOPES,
      }),
    ),
  ),
  expires_at: Type.Optional(
    Nullable(
      Type.String({
        pattern: RFC3339.source,
        description: 'The key stops working at this RFC 3339 time. Null: never.',
        ...withMessage(TIME_RULE),
      }),
    ),
  ),
  allowed_ips: Type.Optional(
    Nullable(
      Type.Array(Type.String({ maxLength: 64, pattern: ADDRESS_RANGE, ...withMessage(ADDRESS_RANGE_RULE) }), {
        minItems: 1,
        maxItems: 100,
        description: 'IP addresses and CIDR ranges from which the key works. Null: from everywhere.',
      }),
    ),
  ),
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
        pattern: TENANT_ID.source,
        ...withMessage(TENANT_ID_RULE),
        description: 'Required for a tenant key, optional for a read key, not allowed for an admin key.',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 200 })),
    rate_limit: Type.Optional(Nullable(RateLimitSchema)),
    ...restrictions,
  },
  {
    additionalProperties: false,
    title: 'NewKey',
    examples: [{ scope: 'tenant', tenant: 'acme', description: 'checkout service' }],
  },
);
export const KeyPatch = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 200 })),
    ...restrictions,
    id: AsShown,
    scope: AsShown,
    tenant: AsShown,
    prefix: AsShown,
    created_at: AsShown,
    rate_limit: AsShown,
    last_used_at: Ignored,
  },
  {
    additionalProperties: false,
    title: 'KeyPatch',
    examples: [{ scopes: ['events:publish'], allowed_ips: ['203.0.113.0/24'] }],
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
    scopes: keyFields.scopes,
    tenant: keyFields.tenant,
    prefix: keyFields.prefix,
    user: Nullable(
      Type.String({ description: 'Who has signed in to the console. Null: the request has a key.' }),
    ),
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
        scopes: null,
        tenant: 'acme',
        prefix: 'phk_9wLx4f',
        user: null,
        capabilities: { inbox: true },
      },
    ],
  },
);
