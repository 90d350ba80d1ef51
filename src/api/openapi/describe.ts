/**
 * What routes say about themselves in `schema`, besides what Fastify itself reads: the OpenAPI document is made of it.
 *
 *   schema: {
 *     operationId: 'pauseEndpoint', summary: 'Pause an endpoint', tags: ['Endpoints'],
 *     params: idParams('ep', 'endpoint'),
 *     response: { 200: EndpointSchema },
 *     problems: { conflict: 'The endpoint is disabled.' },
 *   }
 *
 * A schema with a `title` becomes a component of that name. Problems that follow from the kind of route (no key, no
 * such id, a body that does not fit …) are added by themselves: see `openapi/implied-problems.ts`.
 */
import { type Static, type TSchema, Type } from 'typebox';
import { type IdPrefix, publicId } from '../../domain/ids.ts';
import { type ProblemCode, problemCodes } from '../../domain/problem.ts';
import { Nullable } from '../http/validation.ts';
import type { Tag } from './tags.ts';

declare module 'fastify' {
  interface FastifySchema {
    operationId?: string;
    summary?: string;
    description?: string;
    tags?: readonly Tag[];
    /** Beyond those that every route of its kind has, or with a better reason: when they come. */
    problems?: Reasons;
    /** Not part of the API: files of a page. */
    hide?: boolean;
  }
  interface FastifyContextConfig {
    /** For the document only, never validated: what a handler that reads the bytes itself expects. */
    documents?: { readonly body?: TSchema; readonly headers?: TSchema };
    /** Needs an API key; set for everything under /v1. */
    needsKey?: boolean;
  }
}

/** Problems by their code, each with when it comes. */
export type Reasons = Readonly<Partial<Record<ProblemCode, string>>>;

/** As the code shows it: times are still dates, and nothing is changed any more. */
export type Shown<T extends TSchema> = DeepReadonly<Static<T>>;
type DeepReadonly<T> = T extends Date
  ? T
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** A date until it becomes JSON. Only for answers: what is sent in is checked by `readTime`. */
export const Time = Type.Unsafe<Date>({ type: 'string', format: 'date-time' });

/** One id for all examples: they fit together. */
export function exampleId(prefix: IdPrefix): string {
  return publicId(prefix, '0199d4c2-6f3a-7b15-9e42-5a0c81d70000');
}
export const EXAMPLE_TIME = '2027-01-31T12:00:00.000Z';

export const Id = (prefix: IdPrefix, description?: string) =>
  Type.String({ ...(description !== undefined && { description }), examples: [exampleId(prefix)] });

export const idParams = (prefix: IdPrefix, what: string) =>
  Type.Object({ id: Id(prefix, `The id of the ${what}.`) });

export const Page = <T extends TSchema>(item: T, title = `${(item as { title?: string }).title}Page`) =>
  Type.Object(
    {
      data: Type.Array(item),
      next_cursor: Nullable(
        Type.String({ description: 'Give it as `cursor` for the next page. Null: this was the last.' }),
      ),
    },
    { title },
  );

/** Done, and there is nothing to say about it. */
export const Nothing = Type.Null();

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'A URN that names the code.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What is wrong, and what to do about it.' }),
    code: Type.Enum(Object.keys(problemCodes) as ProblemCode[], {
      description: 'Stable: decide by this.',
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
    description: 'What every error looks like (RFC 9457).',
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

/** A problem that has one of these codes and no other. */
export const ProblemOf = (codes: readonly ProblemCode[]) =>
  Type.Intersect([ProblemSchema, Type.Object({ code: Type.Enum([...codes]) })]);

export interface DescribedAnswer {
  readonly description: string;
  readonly content: Readonly<Record<string, { readonly schema: TSchema }>>;
}

/** An answer that is no JSON, or not always the same. */
export function answerOf(description: string, mediaType: string, schema: TSchema): DescribedAnswer {
  return { description, content: { [mediaType]: { schema } } };
}
