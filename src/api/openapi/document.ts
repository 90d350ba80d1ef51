/** Builds the OpenAPI document from the registered routes. */

import { Components, type JsonSchema } from './components.ts';
import { ProblemSchema } from './describe.ts';
import { ProblemAnswers } from './described-problems.ts';
import type { DocumentedRoute } from './documented-route.ts';
import { describeOperation, type Operation } from './operation.ts';
import { tags } from './tags.ts';

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: object;
    readonly responses: Readonly<Record<string, object>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

const DESCRIPTION = `Webhook delivery that never loses an accepted event.

Send an API key as \`Authorization: Bearer phk_…\`. Errors are \`application/problem+json\`; base decisions on their \`code\`.
Lists are newest first, in pages: send \`next_cursor\` as \`cursor\` to get the next page. Times are RFC 3339, in UTC.
Every answer carries \`x-request-id\`.`;

export function buildDocument(
  routes: readonly DocumentedRoute[],
  about: { version: string; serverUrl: string },
): OpenApiDocument {
  const components = new Components();
  components.use(ProblemSchema as unknown as JsonSchema);
  const paths: Record<string, Record<string, Operation>> = {};
  const problems = new ProblemAnswers();
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}');
    const operation = describeOperation(route, components, problems);
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation;
  }
  const used = new Set(Object.values(paths).flatMap((path) => Object.values(path).flatMap((o) => o.tags)));
  return {
    openapi: '3.1.1',
    info: { title: 'Posthorn', version: about.version, description: DESCRIPTION },
    servers: [{ url: about.serverUrl }],
    tags: Object.entries(tags)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key, `phk_…`. Roles: any key may `read`, admin and tenant keys `write`, `admin` is for admin keys. A key with `scopes` also needs the scopes that follow the role; without any, only keys without `scopes` may call it, except `GET /v1/keys/current`.',
        },
      },
      responses: problems.components(),
      schemas: Object.fromEntries(Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}
