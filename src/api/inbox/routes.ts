/** Routes to create inboxes, to set their answers and to read the requests that arrived. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { TENANT_ID, TENANT_ID_RULE } from '../../domain/event.ts';
import { readTenant, readTime } from '../../ingest/index.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import {
  DEFAULT_ANSWER,
  type Inbox,
  type Inboxes,
  inboxNotFound,
  type ReceivedRequest,
} from '../../manage/inboxes.ts';
import { dropReadOnly } from '../../manage/read-only-fields.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { ListFilters, timeFilter } from '../http/pagination.ts';
import { withMessage } from '../http/validation.ts';
import {
  AsShown,
  EXAMPLE_TIME,
  exampleId,
  Ignored,
  Nothing,
  Page,
  type Shown,
  Time,
} from '../openapi/describe.ts';

const answer = {
  status: Type.Optional(
    Type.Integer({ minimum: 200, maximum: 599, description: 'The status that requests get.' }),
  ),
  delay_ms: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 30_000, description: 'Delay of the answer in milliseconds.' }),
  ),
  reset: Type.Optional(
    Type.Boolean({ description: 'True: the inbox cuts the connection instead of answering.' }),
  ),
};
const NewInbox = Type.Object(
  {
    ...answer,
    tenant: Type.Optional(Type.String({ pattern: TENANT_ID.source, ...withMessage(TENANT_ID_RULE) })),
  },
  { additionalProperties: false, title: 'NewInbox', examples: [{ tenant: 'acme' }] },
);
const InboxPatch = Type.Object(
  {
    ...answer,
    answer: Type.Optional(
      Type.Object(answer, {
        additionalProperties: false,
        description:
          'The answer as GET shows it, so that you can send it back. A field of the same name beside it takes precedence.',
      }),
    ),
    token: AsShown,
    url: AsShown,
    tenant: AsShown,
    created_at: AsShown,
    received: Ignored,
    expires_at: Ignored,
  },
  { additionalProperties: false, title: 'InboxPatch', examples: [{ status: 503, delay_ms: 2000 }] },
);
const READ_ONLY = { asShown: ['token', 'url', 'tenant', 'created_at'], ignored: ['received', 'expires_at'] };
const RequestList = Type.Object(
  {
    since: timeFilter('Selects requests that arrived at or after this RFC 3339 time.'),
    until: timeFilter('Selects requests that arrived before this RFC 3339 time.'),
  },
  { additionalProperties: false },
);
const InboxList = Type.Object({ tenant: ListFilters.tenant }, { additionalProperties: false });

const Answer = Type.Object({ status: Type.Integer(), delay_ms: Type.Integer(), reset: Type.Boolean() });
const exampleAnswer = { status: 200, delay_ms: 0, reset: false };
const InboxSchema = Type.Object(
  {
    token: Type.String({ description: 'Anyone who knows the token can send to the inbox.' }),
    url: Type.String({ description: 'The address of the inbox.' }),
    tenant: Type.String(),
    answer: Answer,
    received: Type.Integer({ description: 'Number of requests that have arrived in total.' }),
    created_at: Time,
    expires_at: Time,
  },
  {
    title: 'Inbox',
    examples: [
      {
        token: 'w8Zc3uHq1vK0mJpT5rXyEg',
        url: 'http://127.0.0.1:8787/inbox/w8Zc3uHq1vK0mJpT5rXyEg',
        tenant: 'acme',
        answer: exampleAnswer,
        received: 1,
        created_at: EXAMPLE_TIME,
        expires_at: EXAMPLE_TIME,
      },
    ],
  },
);
const RequestSchema = Type.Object(
  {
    number: Type.Integer({ description: 'The number of the request. The first one is 1.' }),
    received_at: Time,
    method: Type.String(),
    path: Type.String(),
    headers: Type.Record(Type.String(), Type.String(), { description: 'Credentials are redacted.' }),
    body: Type.String(),
    truncated: Type.Boolean(),
    signature: Type.Object({
      verdict: Type.Enum(['valid', 'invalid', 'unknown'], {
        description:
          'Whether the signature is valid. Posthorn checks it with the secrets of the endpoints that have this address.',
      }),
      detail: Type.String(),
    }),
    answered: Answer,
  },
  {
    title: 'InboxRequest',
    examples: [
      {
        number: 1,
        received_at: EXAMPLE_TIME,
        method: 'POST',
        path: '/inbox/w8Zc3uHq1vK0mJpT5rXyEg',
        headers: { 'webhook-id': exampleId('evt') },
        body: '{"type":"order.created"}',
        truncated: false,
        signature: { verdict: 'valid', detail: 'Signed with the secret of the endpoint (standard).' },
        answered: exampleAnswer,
      },
    ],
  },
);
const InboxPage = Page(InboxSchema);
const RequestPage = Page(RequestSchema);
const tags = ['Inboxes'] as const;
const Token = Type.Object({ token: Type.String({ description: 'The token of the inbox.' }) });
type ByToken = { Params: { token: string } };

export function inboxRoutes(context: ApiDependencies, inboxes: Inboxes): FastifyPluginAsync {
  async function find(caller: Caller, token: string): Promise<Inbox> {
    const inbox = await inboxes.find(token);
    if (inbox === null || (caller.tenant !== null && caller.tenant !== inbox.tenant)) throw inboxNotFound();
    return inbox;
  }
  const show = (inbox: Inbox): Shown<typeof InboxSchema> => ({
    token: inbox.token,
    url: `${context.publicUrl}/inbox/${inbox.token}`,
    tenant: inbox.tenant,
    answer: inbox.answer,
    received: inbox.received,
    created_at: new Date(inbox.createdAt),
    expires_at: new Date(inbox.expiresAt),
  });

  return async (server) => {
    server.addHook('onSend', async (request) => {
      // Inboxes are for testing, so the audit log does not record them. (A GET has no audit trail.)
      (request.audit as typeof request.audit | undefined)?.markUnchanged();
    });

    server.post<{ Body: Static<typeof NewInbox> }>(
      '/inboxes',
      {
        schema: {
          operationId: 'createInbox',
          summary: 'Create a temporary receiver',
          tags,
          body: NewInbox,
          response: { 201: InboxSchema },
          problems: {
            conflict:
              'The limit of inboxes, of the tenant or in total, is reached, or the data of the tenant is being deleted.',
          },
        },
      },
      async (request, reply) => {
        const { tenant, ...given } = request.body;
        const inbox = await inboxes.create(readTenant(tenant, request.caller.tenant), {
          ...DEFAULT_ANSWER,
          ...given,
        });
        return reply.code(201).header('location', `/v1/inboxes/${inbox.token}`).send(show(inbox));
      },
    );

    server.get<{ Querystring: Static<typeof InboxList> }>(
      '/inboxes',
      {
        schema: {
          operationId: 'listInboxes',
          summary: 'List inboxes',
          tags,
          querystring: InboxList,
          response: { 200: InboxPage },
        },
      },
      async (request) => ({
        data: (await inboxes.list(visibleTenant(request.caller, request.query.tenant))).map(show),
        next_cursor: null,
      }),
    );

    server.get<ByToken>(
      '/inboxes/:token',
      {
        schema: {
          operationId: 'getInbox',
          summary: 'Show an inbox',
          tags,
          params: Token,
          response: { 200: InboxSchema },
        },
      },
      async (request) => show(await find(request.caller, request.params.token)),
    );

    server.patch<ByToken & { Body: Static<typeof InboxPatch> }>(
      '/inboxes/:token',
      {
        schema: {
          operationId: 'updateInbox',
          summary: 'Set how an inbox answers',
          tags,
          params: Token,
          body: InboxPatch,
          response: { 200: InboxSchema },
        },
      },
      async (request) => {
        const inbox = await find(request.caller, request.params.token);
        const { answer: shown, ...direct } = dropReadOnly(request.body, show(inbox), READ_ONLY);
        return show(await inboxes.setAnswer(inbox.token, { ...shown, ...direct }));
      },
    );

    server.delete<ByToken>(
      '/inboxes/:token',
      {
        schema: {
          operationId: 'deleteInbox',
          summary: 'Delete an inbox and its requests',
          tags,
          params: Token,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        await inboxes.delete((await find(request.caller, request.params.token)).token);
        return reply.code(204).send();
      },
    );

    server.get<ByToken & { Querystring: Static<typeof RequestList> }>(
      '/inboxes/:token/requests',
      {
        schema: {
          operationId: 'listInboxRequests',
          summary: 'List the requests to an inbox, newest first',
          tags,
          params: Token,
          querystring: RequestList,
          response: { 200: RequestPage },
        },
      },
      async (request) => {
        const { token } = await find(request.caller, request.params.token);
        const since = readTime('since', request.query.since);
        const until = readTime('until', request.query.until);
        const requests = await inboxes.listRequests(token, { since, until });
        return { data: requests.map(showRequest), next_cursor: null };
      },
    );

    server.delete<ByToken>(
      '/inboxes/:token/requests',
      {
        schema: {
          operationId: 'clearInbox',
          summary: 'Delete the requests to an inbox',
          tags,
          params: Token,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        await inboxes.clear((await find(request.caller, request.params.token)).token);
        return reply.code(204).send();
      },
    );
  };
}

function showRequest({ at, body, ...request }: ReceivedRequest): Shown<typeof RequestSchema> {
  return { ...request, received_at: new Date(at), body: body.toString('utf8') };
}
