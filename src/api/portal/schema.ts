import { Type } from 'typebox';
import { TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import {
  DEFAULT_CAPABILITIES,
  DEFAULT_TTL_SECONDS,
  MAX_TTL_SECONDS,
  portalCapabilities,
} from '../../manage/portal-sessions.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';

const ACCENT = '^#[0-9A-Fa-f]{6}$';
const Capabilities = Type.Array(Type.Enum([...portalCapabilities]), {
  minItems: 1,
  uniqueItems: true,
  description: 'The only things that the session may do.',
});
const exampleCapabilities = ['endpoints:read', 'endpoints:write', 'deliveries:read', 'deliveries:replay'];

export const NewPortalSession = Type.Object(
  {
    tenant: Type.String({
      pattern: TENANT_ID.source,
      ...withMessage(TENANT_ID_RULE),
      description: 'The only tenant that the session can see.',
    }),
    capabilities: Type.Optional(
      Type.Array(Type.Enum([...portalCapabilities]), {
        minItems: 1,
        uniqueItems: true,
        description: `What the session may do. Default: ${DEFAULT_CAPABILITIES.join(', ')}.`,
      }),
    ),
    ttl_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_TTL_SECONDS,
        default: DEFAULT_TTL_SECONDS,
        description: 'How long the session lasts.',
      }),
    ),
    description: Type.Optional(
      Type.String({
        maxLength: 200,
        description: 'For example who opens the portal. Shown in the audit log.',
      }),
    ),
    appearance: Type.Optional(
      Type.Object(
        {
          theme: Type.Optional(Type.Enum(['light', 'dark'])),
          accent: Type.Optional(
            Type.String({
              pattern: ACCENT,
              ...withMessage('must be a colour such as "#0f766e"'),
              description: 'The colour of buttons, links and charts.',
            }),
          ),
        },
        { additionalProperties: false, description: 'How the pages look. It is a part of `url`.' },
      ),
    ),
  },
  {
    additionalProperties: false,
    title: 'NewPortalSession',
    examples: [{ tenant: 'acme', capabilities: exampleCapabilities, ttl_seconds: 900 }],
  },
);

const fields = {
  id: Id('key'),
  tenant: Type.String(),
  capabilities: Capabilities,
  description: Type.String(),
  prefix: Type.String({ description: 'The first characters of the token, to recognize it by.' }),
  created_at: Time,
  last_used_at: Nullable(Time),
  expires_at: Time,
};
const example = {
  id: exampleId('key'),
  tenant: 'acme',
  capabilities: exampleCapabilities,
  description: '',
  prefix: 'phk_9wLx4f',
  created_at: EXAMPLE_TIME,
  last_used_at: null,
  expires_at: EXAMPLE_TIME,
};

export const PortalSessionSchema = Type.Object(fields, { title: 'PortalSession', examples: [example] });
export const CreatedPortalSession = Type.Object(
  {
    ...fields,
    url: Type.String({
      description:
        'Opens the console for this session. It contains the token behind `#`, so browsers do not send it to servers. Shown here and never again.',
    }),
    token: Type.String({
      description: 'Works as an API key until the session ends. Shown here and never again.',
    }),
  },
  {
    title: 'CreatedPortalSession',
    examples: [
      { ...example, url: 'https://posthorn.example/console#portal=phk_9wLx4f…', token: 'phk_9wLx4f…' },
    ],
  },
);
export const PortalSessionId = idParams('key', 'portal session');
export const PortalSessionList = Type.Object(
  { ...PageQuery, tenant: ListFilters.tenant },
  { additionalProperties: false },
);
