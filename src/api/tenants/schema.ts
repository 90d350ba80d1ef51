import { Type } from 'typebox';
import { TENANT_ID } from '../../domain/event.ts';
import {
  MAX_VERSION_LENGTH,
  VERSION_NAME,
  VERSION_RULE,
  validationModes,
} from '../../domain/event-type-version.ts';
import { MAX_METADATA_ENTRIES } from '../../manage/metadata.ts';
import { PageQuery } from '../http/pagination.ts';
import { RateLimitSchema } from '../http/rate-limit.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { AsShown, EXAMPLE_TIME, Ignored, Time } from '../openapi/describe.ts';

export const TenantBody = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: 200 })),
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    metadata: Type.Optional(
      Type.Record(Type.String({ maxLength: 128 }), Type.Unknown(), { maxProperties: MAX_METADATA_ENTRIES }),
    ),
    ingest_rate_limit: Type.Optional(Nullable(RateLimitSchema)),
    max_endpoints: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 0,
          maximum: 1_000_000,
          description:
            'How many endpoints it may have. Existing ones stay. Null: `POSTHORN_MAX_ENDPOINTS_PER_TENANT`.',
        }),
      ),
    ),
    retention_days: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 36_500,
          description:
            'Days after which its events are deleted, with their deliveries and attempts. At most `POSTHORN_RETENTION_EVENTS`. Null: as long as those of all tenants.',
        }),
      ),
    ),
    validation: Type.Optional(
      Type.Enum([...validationModes], {
        description:
          'How its payloads are checked against the catalogue. `warn`: invalid events are flagged. `strict`: they are refused, and so are unknown types. The `validation` of an event type outranks it.',
      }),
    ),
    api_version: Type.Optional(
      Nullable(
        Type.String({
          maxLength: MAX_VERSION_LENGTH,
          pattern: VERSION_NAME.source,
          description: 'The version that its new endpoints pin.',
          ...withMessage(VERSION_RULE),
        }),
      ),
    ),
    id: AsShown,
    created_at: AsShown,
    updated_at: Ignored,
  },
  {
    additionalProperties: false,
    title: 'TenantSettings',
    examples: [{ name: 'Acme Ltd', metadata: { plan: 'gold' }, ingest_rate_limit: { per_second: 50 } }],
  },
);

export const TenantSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: Type.String(),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    ingest_rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
    max_endpoints: Nullable(Type.Integer()),
    retention_days: Nullable(Type.Integer()),
    validation: Type.Enum([...validationModes]),
    api_version: Nullable(Type.String()),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: 'Tenant',
    examples: [
      {
        id: 'acme',
        name: 'Acme Ltd',
        description: '',
        metadata: { plan: 'gold' },
        ingest_rate_limit: { per_second: 50, burst: 50 },
        max_endpoints: null,
        retention_days: null,
        validation: 'off',
        api_version: null,
        created_at: EXAMPLE_TIME,
        updated_at: EXAMPLE_TIME,
      },
    ],
  },
);
export const TenantId = Type.Object({
  id: Type.String({ pattern: TENANT_ID.source, description: 'The id of the tenant.' }),
});
export const TenantList = Type.Object(PageQuery, { additionalProperties: false });
export const TenantDeletion = Type.Object(
  {
    expunge: Type.Optional(
      Type.Boolean({ description: 'True: deletes everything of the tenant, for good.' }),
    ),
    confirm: Type.Optional(Type.String({ description: 'With `expunge`: the id of the tenant again.' })),
    dry_run: Type.Optional(Type.Boolean({ description: 'True, with `expunge`: only counts its events.' })),
  },
  { additionalProperties: false },
);
