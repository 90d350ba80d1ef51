import { STATUS_CODES } from 'node:http';
import { type ProblemCode, problemCodes } from '../../domain/problem.ts';
import { needsBody } from '../http/validation.ts';
import type { Components, JsonSchema } from './components.ts';
import type { Reasons } from './describe.ts';
import { type ProblemAnswers, problemAnswer } from './described-problems.ts';
import { type DocumentedRoute, type KeyRole, roleOf, scopesOf } from './documented-route.ts';
import { impliedProblems, unexpectedProblems } from './implied-problems.ts';

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
  readonly security: readonly { readonly key: readonly [KeyRole, ...string[]] }[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

const NO_CONTENT = new Set([204, 304]);

export function describeOperation(
  route: DocumentedRoute,
  components: Components,
  shared: ProblemAnswers,
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
    security: config.needsKey === true ? [{ key: [roleOf(route), ...(scopesOf(route) ?? [])] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        // For other methods a missing body counts as an empty one, which may lack required fields.
        required: needsBody(route.method) || hasRequired(body),
        content: Object.fromEntries(
          (route.method === 'PATCH'
            ? ['application/json', 'application/merge-patch+json']
            : ['application/json']
          ).map((type) => [type, { schema: components.use(body) }]),
        ),
      },
    }),
    responses: describeAnswers(route, components, shared),
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
  shared: ProblemAnswers,
): Record<string, Answer> {
  const answers: Record<string, Answer> = {};
  for (const [status, given] of Object.entries((route.schema.response ?? {}) as Record<string, JsonSchema>))
    answers[status] = describeAnswer(Number(status), given, components);
  for (const [status, codes] of byStatus(route))
    answers[status] = describeProblems(codes, route.schema.problems ?? {}, shared);
  answers.default = shared.unexpected;
  return answers;
}

function byStatus(route: DocumentedRoute): Map<number, Set<ProblemCode>> {
  const own = Object.keys(route.schema.problems ?? {}) as ProblemCode[];
  const found = new Map<number, Set<ProblemCode>>();
  for (const code of [...impliedProblems(route), ...own]) {
    const { status } = problemCodes[code];
    found.set(status, (found.get(status) ?? new Set()).add(code));
  }
  // `default` is for statuses that are not listed.
  for (const code of unexpectedProblems) found.get(problemCodes[code].status)?.add(code);
  return found;
}

/** Without reasons of its own, the route refers to the answer that it shares with others. */
function describeProblems(codes: Set<ProblemCode>, reasons: Reasons, shared: ProblemAnswers): Answer {
  const list = [...codes].sort();
  return list.some((code) => reasons[code] !== undefined) ? problemAnswer(list, reasons) : shared.of(list);
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
