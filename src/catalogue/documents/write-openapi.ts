/** Describes the events for customers: an OpenAPI 3.1 document with a webhook for each version that is in use. */
import { isObject, type Json, type JsonSchema } from '../keywords.ts';
import { EVENT_TYPE_EXTENSION, VERSION_EXTENSION } from './read-openapi.ts';

/** As tools that compare OpenAPI documents read it. */
const SUNSET_EXTENSION = 'x-sunset';

export interface DescribedVersion {
  readonly name: string;
  /** Null: the type has no versions. */
  readonly version: string | null;
  readonly isLatest: boolean;
  readonly description: string;
  readonly schema: JsonSchema | null;
  readonly example: unknown;
  readonly isDeprecated: boolean;
  /** When the type or the version is planned to end, whichever is earlier. */
  readonly sunsetAt: Date | null;
}

/** The latest version of a type has its plain name, others have `type@version`. */
export function writeOpenApi(versions: readonly DescribedVersion[]): Json {
  const schemas: Record<string, unknown> = {};
  const webhooks: Record<string, unknown> = {};
  for (const each of versions) {
    const key = each.isLatest || each.version === null ? each.name : `${each.name}@${each.version}`;
    // `@` is not allowed here. `order@v1` and a type `order_v1` must not share a name.
    let component = key.replace('@', '_');
    while (Object.hasOwn(schemas, component)) component += '_';
    schemas[component] =
      each.schema === null ? true : rebase(each.schema, `#/components/schemas/${component}`);
    webhooks[key] = { post: operationOf(each, component) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Events', version: '1', description: 'What the webhooks of this service send.' },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    webhooks,
    components: { schemas },
  };
}

function operationOf(each: DescribedVersion, component: string): Json {
  const { name, version, description, isDeprecated, sunsetAt, example } = each;
  const envelope = {
    type: 'object',
    required: ['id', 'type', 'timestamp', 'data'],
    properties: {
      id: { type: 'string', description: 'The same in every attempt: use it to ignore repetitions.' },
      type: { const: name },
      timestamp: { type: 'string', format: 'date-time' },
      ...(version !== null && { schema_version: { const: version } }),
      data: { $ref: `#/components/schemas/${component}` },
    },
  };
  return {
    summary: name,
    description,
    ...(isDeprecated && { deprecated: true }),
    ...(sunsetAt !== null && { [SUNSET_EXTENSION]: sunsetAt.toISOString() }),
    [EVENT_TYPE_EXTENSION]: name,
    ...(version !== null && { [VERSION_EXTENSION]: version }),
    requestBody: {
      content: {
        'application/json': {
          schema: envelope,
          ...(example !== null && {
            example: {
              id: 'evt_01jz8c9q2v5x7m3k4n6p8r0t1w',
              type: name,
              timestamp: '2027-01-31T12:00:00.000Z',
              ...(version !== null && { schema_version: version }),
              data: example,
            },
          }),
        },
      },
    },
    responses: { '2XX': { description: 'The event was received.' } },
  };
}

/** References of the schema are relative to the schema. In the document they need its place. */
function rebase(value: unknown, place: string): unknown {
  if (Array.isArray(value)) return value.map((each) => rebase(each, place));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      // As keywords they have a string. A field of the payload with such a name has a schema.
      .filter(([name, part]) => !((name === '$schema' || name === '$id') && typeof part === 'string'))
      .map(([name, part]) =>
        name === '$ref' && typeof part === 'string' && part.startsWith('#')
          ? [name, `${place}${part.slice(1)}`]
          : [name, rebase(part, place)],
      ),
  );
}
