/** The OpenAPI document as a contract: lists the operations and checks answers against it. */
import { Compile, type Validator } from 'typebox/schema';
import type { JsonSchema } from '../../src/api/openapi/components.ts';
import { PROBLEM_TYPE } from '../../src/api/openapi/describe.ts';
import type { OpenApiDocument } from '../../src/api/openapi/document.ts';
import type { KeyRole } from '../../src/api/openapi/documented-route.ts';
import type { Answer as DocumentedAnswer, Operation } from '../../src/api/openapi/operation.ts';
import type { ProblemCode } from '../../src/domain/problem.ts';

export interface ApiOperation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  /** Null: it needs no key. */
  readonly role: KeyRole | null;
  readonly body: JsonSchema | null;
  /** The answer does not end. Such operations have their own tests. */
  readonly streams: boolean;
}

export interface SeenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export class Contract {
  readonly document: OpenApiDocument;
  readonly operations: readonly ApiOperation[];
  readonly #closed: OpenApiDocument['components'];
  readonly #validators = new Map<string, Validator>();

  constructor(document: OpenApiDocument) {
    this.document = document;
    // Answers must not contain fields that the document does not describe.
    this.#closed = closeObjects(document.components) as OpenApiDocument['components'];
    this.operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: operation.operationId,
        method: method.toUpperCase(),
        path,
        operation,
        role: operation.security[0]?.key[0] ?? null,
        body: operation.requestBody?.content['application/json']?.schema ?? null,
        streams: JSON.stringify(operation.responses).includes('text/event-stream'),
      })),
    );
  }

  /** Resolves a reference to a schema. */
  resolve(schema: JsonSchema): JsonSchema {
    const { $ref } = schema;
    return typeof $ref === 'string' ? this.document.components.schemas[$ref.split('/').at(-1)!]! : schema;
  }

  exampleOf({ body }: ApiOperation): unknown {
    return body === null ? undefined : (this.resolve(body).examples as unknown[])[0];
  }

  /** The problems that the operation documents. Status `default`: problems of every operation. */
  problemsOf({ operation }: ApiOperation): { readonly status: string; readonly code: ProblemCode }[] {
    return Object.entries(operation.responses).flatMap(([status, answer]) => {
      const schema = this.#resolveAnswer(answer).content?.[PROBLEM_TYPE]?.schema;
      return schema === undefined ? [] : codesOf(schema).map((code) => ({ status, code }));
    });
  }

  /** Describes how an answer violates the document. Null: it does not. */
  violation({ name, operation }: ApiOperation, answer: SeenAnswer): string | null {
    const documented = operation.responses[answer.status];
    if (documented === undefined)
      return `${name}: ${answer.status} is not documented: ${answer.text.slice(0, 500)}`;
    const { content = {} } = this.#resolveAnswer(documented);
    const [[type, { schema }] = [null, { schema: {} }]] = Object.entries(content);
    if (type === null)
      return answer.text === '' ? null : `${name}: ${answer.status} has a body: ${answer.text.slice(0, 500)}`;
    if (!String(answer.headers['content-type']).startsWith(type))
      return `${name}: ${answer.status} is ${answer.headers['content-type']} and not ${type}`;
    const value = type.endsWith('json') ? JSON.parse(answer.text) : answer.text;
    const validator = this.#validatorOf(`${name} ${answer.status}`, schema);
    if (validator.Check(value)) return null;
    const errors = validator
      .Errors(value)[1]
      .map(({ instancePath, message }) => `${instancePath} ${message}`);
    return `${name}: ${answer.status} is not as documented: ${errors.join('; ')} in ${answer.text.slice(0, 1000)}`;
  }

  /** Whether the document allows a body. */
  allows({ body }: ApiOperation, value: unknown): boolean {
    const { components } = this.document;
    return body !== null && Compile({ ...body, components } as JsonSchema).Check(value);
  }

  #resolveAnswer(answer: DocumentedAnswer): { content?: Record<string, { schema: JsonSchema }> } {
    return '$ref' in answer ? this.document.components.responses[answer.$ref.split('/').at(-1)!]! : answer;
  }

  #validatorOf(name: string, schema: JsonSchema): Validator {
    let validator = this.#validators.get(name);
    if (validator === undefined) {
      const closed = closeObjects(schema) as JsonSchema;
      validator = Compile({ ...closed, components: this.#closed } as JsonSchema);
      this.#validators.set(name, validator);
    }
    return validator;
  }
}

/** The codes in the schema of a problem. */
export function codesOf(schema: JsonSchema): ProblemCode[] {
  const [, narrowed] = schema.allOf as [JsonSchema, { properties: { code: { enum: ProblemCode[] } } }];
  return narrowed.properties.code.enum;
}

function closeObjects(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closeObjects);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(
    // Leave `allOf` open: its parts do not know each other's fields.
    Object.entries(value).map(([name, part]) => [
      name,
      name === 'examples' || name === 'allOf' ? part : closeObjects(part),
    ]),
  );
  const { properties } = copy as { properties?: object };
  const isOpen = copy.type === 'object' && copy.additionalProperties === undefined;
  return isOpen && properties !== undefined && Object.keys(properties).length > 0
    ? { ...copy, additionalProperties: false }
    : copy;
}
