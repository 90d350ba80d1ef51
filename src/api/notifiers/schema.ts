import { Type } from 'typebox';
import { disabledReasons } from '../../domain/endpoint.ts';
import { MAX_EVENT_PATTERN_LENGTH, TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import { notifierKinds } from '../../domain/notices.ts';
import { operationalTypes } from '../../domain/operational.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { documentedAs, Nullable, withMessage } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';

export const notifierStatuses = ['active', 'unconfirmed', 'disabled'] as const;

/** One plain address: no name, no comments, no list. */
const ADDRESS =
  "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+$";

const example = {
  id: exampleId('ntf'),
  tenant: 'acme',
  operator: false,
  kind: 'slack',
  url: 'https://hooks.slack.com/[redacted]',
  address: null,
  events: ['posthorn.*'],
  description: '#webhooks',
  status: 'active',
  disabled_reason: null,
  confirmed_at: null,
  endpoint_id: exampleId('ep'),
  created_at: EXAMPLE_TIME,
};

export const NotifierSchema = Type.Object(
  {
    id: Id('ntf'),
    tenant: Type.String(),
    operator: Type.Boolean({ description: 'True: the notifier gets notices about all tenants.' }),
    kind: Type.Enum([...notifierKinds]),
    url: Nullable(
      Type.String({
        description: 'The URL of the chat. Its path is missing if the key may not read secrets.',
      }),
    ),
    address: Nullable(Type.String({ description: 'The e-mail address.' })),
    events: Type.Array(Type.String(), { description: 'The operational events that it reports.' }),
    description: Type.String(),
    status: Type.Enum([...notifierStatuses], {
      description:
        '`unconfirmed`: the owner of the address has not opened the link yet, and gets nothing else.',
    }),
    disabled_reason: Nullable(Type.Enum([...disabledReasons])),
    confirmed_at: Nullable(Time),
    endpoint_id: Id('ep', 'Finds its messages: `GET /v1/deliveries?endpoint_id=`.'),
    created_at: Time,
  },
  { title: 'Notifier', examples: [example] },
);

/** For the document: the operational events, and their prefixes. The control plane names them in its message. */
const NoticePattern = Type.String({
  minLength: 1,
  maxLength: MAX_EVENT_PATTERN_LENGTH,
  ...documentedAs(Type.String({ pattern: `^(${listPatterns().join('|')})$` })),
});

function listPatterns(): string[] {
  const patterns = Object.values(operationalTypes).flatMap((type) => {
    const segments = type.split('.');
    return [type, ...segments.slice(1).map((_, index) => `${segments.slice(0, index + 1).join('.')}.*`)];
  });
  return [...new Set(patterns)].map((pattern) => pattern.replaceAll('.', '\\.').replaceAll('*', '\\*'));
}

export const NewNotifier = Type.Object(
  {
    kind: Type.Enum([...notifierKinds]),
    tenant: Type.Optional(Type.String({ pattern: TENANT_ID.source, ...withMessage(TENANT_ID_RULE) })),
    operator: Type.Optional(
      Type.Boolean({
        description: 'True: the notifier gets notices about all tenants. Only admin keys may set it.',
      }),
    ),
    url: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'With `slack`: the URL of a Slack-compatible webhook.',
      }),
    ),
    address: Type.Optional(
      Type.String({
        maxLength: 254,
        pattern: ADDRESS,
        description: 'With `email`: one e-mail address.',
        examples: ['ops@example.com'],
        ...withMessage('must be one e-mail address, such as "ops@example.com"'),
      }),
    ),
    events: Type.Optional(
      Type.Array(NoticePattern, {
        minItems: 1,
        maxItems: 20,
        description: 'Operational events, or prefixes such as `posthorn.circuit.*`. Default: all.',
      }),
    ),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  {
    additionalProperties: false,
    title: 'NewNotifier',
    examples: [{ kind: 'slack', url: 'https://hooks.slack.com/services/T000/B000/XXXX' }],
  },
);

export const NotifierId = idParams('ntf', 'notifier');
export const NotifierList = Type.Object(
  { ...PageQuery, tenant: ListFilters.tenant },
  { additionalProperties: false },
);
