import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import { type DescribedVersion, writeOpenApi } from '../../catalogue/documents/write-openapi.ts';
import { latestVersion } from '../../domain/event-type-version.ts';
import type { Pool } from '../../postgres/database.ts';
import { listAllVersions } from '../../postgres/queries/event-type-versions.ts';
import { type EventTypeRecord, listAllEventTypes } from '../../postgres/queries/event-types.ts';
import { answerOf } from '../openapi/describe.ts';

export function catalogueDocumentRoutes(pool: Pool): FastifyPluginAsync {
  return async (server) => {
    server.get(
      '/catalogue/openapi.json',
      {
        schema: {
          operationId: 'getCatalogueDocument',
          summary: 'Get the catalogue as an OpenAPI document with webhooks, to give to customers',
          description:
            'The latest version of a type has its plain name, other versions `type@version`. Drafts and retired versions are left out.',
          tags: ['Event types'],
          response: {
            200: answerOf(
              'An OpenAPI 3.1 document.',
              'application/json',
              Type.Record(Type.String(), Type.Unknown()),
            ),
          },
        },
      },
      async (_request, reply) =>
        reply.type('application/json').send(JSON.stringify(writeOpenApi(await describeAll(pool)), null, 2)),
    );
  };
}

async function describeAll(pool: Pool): Promise<DescribedVersion[]> {
  const versions = Map.groupBy(await listAllVersions(pool), ({ event_type }) => event_type);
  return (await listAllEventTypes(pool)).flatMap((type): DescribedVersion[] => {
    const own = versions.get(type.name) ?? [];
    const latest = latestVersion(own);
    if (own.length === 0) return [describeType(type)];
    return own
      .filter(({ status }) => status === 'active' || status === 'deprecated')
      .map((each) => ({
        name: type.name,
        version: each.version,
        isLatest: each === latest,
        description: each.description === '' ? type.description : each.description,
        schema: each.schema,
        example: each.example,
        isDeprecated: type.deprecated || each.status === 'deprecated',
        sunsetAt: earlier(type.sunset_at, each.sunset_at),
      }));
  });
}

const describeType = ({
  name,
  description,
  schema,
  example,
  deprecated,
  sunset_at,
}: EventTypeRecord): DescribedVersion => ({
  name,
  version: null,
  isLatest: true,
  description,
  schema,
  example,
  isDeprecated: deprecated,
  sunsetAt: sunset_at,
});

const earlier = (one: Date | null, other: Date | null): Date | null => {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
};
