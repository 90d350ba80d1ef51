import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { firstIdAt, idPrefixes, publicId } from '../../domain/ids.ts';
import { deadReasons } from '../../domain/outcome.ts';
import { readTime } from '../../ingest/index.ts';
import { visibleTenant } from '../../manage/caller.ts';
import type { Pool } from '../../postgres/database.ts';
import { type DeadLetterGroup, groupDeadLetters } from '../../postgres/queries/dead-letter-groups.ts';
import type { IdRange } from '../../postgres/queries/list-query.ts';
import { ListFilters } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, type Shown, Time } from '../openapi/describe.ts';

const GroupQuery = Type.Object(
  { tenant: ListFilters.tenant, since: ListFilters.since, until: ListFilters.until },
  { additionalProperties: false },
);
const GroupSchema = Type.Object({
  endpoint_id: Id('ep'),
  url: Nullable(Type.String({ description: 'Null: the endpoint has been deleted.' })),
  description: Nullable(Type.String({ description: 'The description of the endpoint.' })),
  tenant: Type.String(),
  reason: Type.Enum([...deadReasons]),
  count: Type.Integer(),
  oldest_at: Time,
  newest_at: Time,
});
const GroupList = Type.Object(
  {
    data: Type.Array(GroupSchema),
    next_cursor: Type.Null(),
    more: Type.Boolean({ description: 'There are older dead letters that were not counted.' }),
  },
  {
    title: 'DeadLetterGroups',
    examples: [
      {
        data: [
          {
            endpoint_id: exampleId('ep'),
            url: 'https://example.com/webhooks',
            description: 'Orders to the warehouse',
            tenant: 'acme',
            reason: 'exhausted',
            count: 42,
            oldest_at: EXAMPLE_TIME,
            newest_at: EXAMPLE_TIME,
          },
        ],
        next_cursor: null,
        more: false,
      },
    ],
  },
);

const COUNT_LIMIT = 20_000;

/** People handle dead letters by endpoint and reason, rarely one by one. */
export function deadLetterGroupRoutes(pool: Pool): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof GroupQuery> }>(
      '/dead-letters/groups',
      {
        schema: {
          operationId: 'listDeadLetterGroups',
          summary: 'Count dead letters by endpoint and reason',
          description: `Counts the newest ${COUNT_LIMIT.toLocaleString('en')}.`,
          tags: ['Dead letters'],
          querystring: GroupQuery,
          response: { 200: GroupList },
        },
      },
      async (request): Promise<Shown<typeof GroupList>> => {
        const groups = await groupDeadLetters(
          pool,
          visibleTenant(request.caller, request.query.tenant),
          COUNT_LIMIT,
          boundsOf(request.query),
        );
        const counted = groups.reduce((sum, { count }) => sum + count, 0);
        return { data: groups.map(showGroup), next_cursor: null, more: counted === COUNT_LIMIT };
      },
    );
  };
}

function boundsOf(query: Static<typeof GroupQuery>): IdRange {
  const since = readTime('since', query.since);
  const until = readTime('until', query.until);
  return {
    from: since === null ? null : firstIdAt(since),
    before: until === null ? null : firstIdAt(until),
  };
}

const showGroup = (group: DeadLetterGroup): Shown<typeof GroupSchema> => ({
  ...group,
  endpoint_id: publicId(idPrefixes.endpoint, group.endpoint_id),
});
