import { STATUS_CODES } from 'node:http';
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import type { Components, JsonSchema } from './components.ts';

export interface DocumentedRoute {
  readonly method: string;
  readonly url: string;
  readonly schema: FastifySchema;
  readonly config: FastifyContextConfig;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

export interface Content {
  readonly [mediaType: string]: { readonly schema: JsonSchema };
}
export type Answer = { readonly description: string; readonly content?: Content } | { readonly $ref: string };

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly { readonly key: readonly Role[] }[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

/** The least that a key must be for: looking, changing what belongs to its tenant, or everything. */
export type Role = 'read' | 'write' | 'admin';

function roleOf({ method, config }: DocumentedRoute): Role {
  if (config.admin === true) return 'admin';
  return (config.reads ?? method === 'GET') ? 'read' : 'write';
}

const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);
const NO_CONTENT = new Set([204, 304]);

export function describeOperation(
  route: DocumentedRoute,
  components: Components,
  usedProblems: Set<number>,
): Operation {
  const { schema, config } = route;
  const { operationId = '', summary = '', tags = [] } = schema;
  const { description } = schema;
  const parameters = [
    ...parametersOf(schema.params, 'path', components),
    ...parametersOf(schema.querystring, 'query', components),
    ...parametersOf(config.documents?.headers, 'header', components),
  ];
  const body = (config.documents?.body ?? schema.body) as JsonSchema | undefined;
  return {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    tags,
    security: config.needsKey === true ? [{ key: [roleOf(route)] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        // No body is an empty one: it may be left out where nothing in it is required.
        required: hasRequired(body),
        content: { 'application/json': { schema: components.use(body) } },
      },
    }),
    responses: describeAnswers(route, components, usedProblems),
  };
}

function parametersOf(schema: unknown, place: Parameter['in'], components: Components): Parameter[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(typeof description === 'string' && { description }),
    schema: components.use(rest),
  }));
}

const hasRequired = ({ required }: JsonSchema): boolean => Array.isArray(required) && required.length > 0;

function describeAnswers(
  route: DocumentedRoute,
  components: Components,
  usedProblems: Set<number>,
): Record<string, Answer> {
  const answers: Record<string, Answer> = {};
  for (const [status, given] of Object.entries((route.schema.response ?? {}) as Record<string, JsonSchema>))
    answers[status] = describeAnswer(Number(status), given, components);
  for (const status of impliedProblems(route)) {
    if (answers[status] !== undefined) continue;
    usedProblems.add(status);
    answers[status] = { $ref: `#/components/responses/Problem${status}` };
  }
  if (route.config.needsKey === true) answers.default = { $ref: '#/components/responses/Unexpected' };
  return answers;
}

function describeAnswer(status: number, given: JsonSchema, components: Components): Answer {
  const standard = STATUS_CODES[status] ?? 'Answer';
  const description = typeof given.description === 'string' ? given.description : standard;
  if (NO_CONTENT.has(status)) return { description };
  if (typeof given.content === 'object') {
    const content = Object.entries(given.content as Content).map(
      ([type, { schema }]) => [type, { schema: components.use(schema) }] as const,
    );
    return { description, content: Object.fromEntries(content) };
  }
  return { description: standard, content: { 'application/json': { schema: components.use(given) } } };
}

/** What can go wrong with any route of this kind, whatever it does. */
function impliedProblems({ method, schema, config }: DocumentedRoute): number[] {
  if (config.needsKey !== true) return [];
  const takesBody = METHODS_WITH_BODY.has(method);
  const hasInput = schema.body !== undefined || config.documents?.body !== undefined || schema.querystring;
  return [
    ...(takesBody || hasInput || schema.params ? [400] : []),
    401,
    403,
    ...(schema.params ? [404] : []),
    // The same idempotency key for another request, or while the first is under way.
    ...(config.documents?.headers !== undefined ? [409] : []),
    ...(takesBody ? [413, 415] : []),
    ...(hasInput || schema.params ? [422] : []),
    // Keys have rate limits.
    429,
  ];
}
