/**
 * The parts of a route's `schema` that describe it in the OpenAPI document:
 *
 *   schema: {
 *     operationId: 'pauseEndpoint', summary: 'Pause an endpoint', tags: ['Endpoints'],
 *     params: idParams('ep', 'endpoint'),
 *     response: { 200: EndpointSchema },
 *     problems: { conflict: 'The endpoint is disabled.' },
 *   }
 *
 * A schema with a `title` becomes a component of that name. Problems that every route of a kind has (no key, unknown id,
 * invalid body …) are added automatically: see `implied-problems.ts`.
 */
import { type Static, type TSchema, Type } from 'typebox';
import { type IdPrefix, idPattern, publicId } from '../../domain/ids.ts';
import { type ProblemCode, problemCodes } from '../../domain/problem.ts';
import { Nullable } from '../http/validation.ts';
import type { Tag } from './tags.ts';

declare module 'fastify' {
  interface FastifySchema {
    operationId?: string;
    summary?: string;
    description?: string;
    tags?: readonly Tag[];
    /** Problems of this route, or better reasons for those that every route of its kind has. */
    problems?: Reasons;
    /** Not part of the document. */
    hide?: boolean;
  }
  interface FastifyContextConfig {
    /** Only for the document, not for validation: what a handler that reads the bytes itself expects. */
    documents?: { readonly body?: TSchema; readonly headers?: TSchema };
    /** The route needs an API key. Set for all routes under /v1. */
    needsKey?: boolean;
  }
}

/** When a problem occurs, by its code. */
export type Reasons = Readonly<Partial<Record<ProblemCode, string>>>;

/** A value that a schema describes, before it becomes JSON: times are dates, and it is read-only. */
export type Shown<T extends TSchema> = DeepReadonly<Static<T>>;
type DeepReadonly<T> = T extends Date
  ? T
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** A date that becomes text in JSON. Only for answers: `readTime` reads the times of requests. */
export const Time = Type.Unsafe<Date>({ type: 'string', format: 'date-time' });

/** A field that is shown and cannot be changed. A change may contain it, so that callers can send back what they read. */
const readOnly = (description: string) => Type.Optional(Type.Unknown({ readOnly: true, description }));
export const AsShown = readOnly('Read-only. May be sent with the value that it has.');
export const Ignored = readOnly('Read-only. Ignored if it is sent.');

/** The same id in all examples, so that they match. */
export function exampleId(prefix: IdPrefix): string {
  return publicId(prefix, '0199d4c2-6f3a-7b15-9e42-5a0c81d70000');
}
export const EXAMPLE_TIME = '2027-01-31T12:00:00.000Z';

export const Id = (prefix: IdPrefix, description?: string) =>
  Type.String({
    pattern: idPattern(prefix),
    ...(description !== undefined && { description }),
    examples: [exampleId(prefix)],
  });

export const idParams = (prefix: IdPrefix, what: string) =>
  Type.Object({ id: Id(prefix, `The id of the ${what}.`) });

export const Page = <T extends TSchema>(item: T, title = `${(item as { title?: string }).title}Page`) =>
  Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Nullable(
        Type.String({
          description: 'Send it as `cursor` to get the next page. Null: this is the last page.',
        }),
      ),
    },
    { title },
  );

/** An answer without a body. */
export const Nothing = Type.Null();

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'A URN that names the code.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What is wrong, and what to do about it.' }),
    code: Type.Enum(Object.keys(problemCodes) as ProblemCode[], {
      description: 'Stable: base decisions on it.',
    }),
    errors: Type.Array(
      Type.Object({
        path: Type.String({ description: 'The field, such as `retry.schedule[0]`.' }),
        message: Type.String(),
      }),
    ),
    request_id: Type.Optional(Type.String({ description: 'Finds the request in the log.' })),
  },
  {
    title: 'Problem',
    description: 'The form of every error (RFC 9457).',
    examples: [
      {
        type: 'urn:posthorn:problem:not_found',
        title: problemCodes.not_found.title,
        status: 404,
        detail: `There is no endpoint ${exampleId('ep')}.`,
        code: 'not_found',
        errors: [],
        request_id: exampleId('req'),
      },
    ],
  },
);

export const PROBLEM_TYPE = 'application/problem+json';

/** A problem with one of these codes. */
export const ProblemOf = (codes: readonly ProblemCode[]) =>
  Type.Intersect([ProblemSchema, Type.Object({ code: Type.Enum([...codes]) })]);

export interface DescribedAnswer {
  readonly description: string;
  readonly content: Readonly<Record<string, { readonly schema: TSchema }>>;
}

/** An answer that is not JSON, or whose JSON has no fixed schema. */
export function answerOf(description: string, mediaType: string, schema: TSchema): DescribedAnswer {
  return { description, content: { [mediaType]: { schema } } };
}
