import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import { type DescribedVersion, writeOpenApi } from '../../catalogue/documents/write-openapi.ts';
import { latestVersion } from '../../domain/event-type-version.ts';
import type { Pool } from '../../postgres/database.ts';
import { listAllVersions, readCatalogueRevision } from '../../postgres/queries/event-type-versions.ts';
import { type EventTypeRecord, listAllEventTypes } from '../../postgres/queries/event-types.ts';
import { answerOf } from '../openapi/describe.ts';

export function catalogueDocumentRoutes(pool: Pool): FastifyPluginAsync {
  const document = new CatalogueDocument(pool);
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
      async (_request, reply) => reply.type('application/json').send(await document.read()),
    );
  };
}

/**
 * The document of the current catalogue, which is the same for every key. A large catalogue takes a second to write, so it is
 * written once for each state of the catalogue.
 */
class CatalogueDocument {
  readonly #pool: Pool;
  #written: { readonly revision: string; readonly text: Promise<Buffer> } | null = null;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async read(): Promise<Buffer> {
    const revision = await readCatalogueRevision(this.#pool);
    if (this.#written?.revision !== revision) {
      const written = { revision, text: this.#write() };
      this.#written = written;
      written.text.catch(() => {
        if (this.#written === written) this.#written = null;
      });
    }
    return this.#written.text;
  }

  async #write(): Promise<Buffer> {
    return Buffer.from(JSON.stringify(writeOpenApi(await describeAll(this.#pool)), null, 2));
  }
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
