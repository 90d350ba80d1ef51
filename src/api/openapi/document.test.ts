import { Validator } from '@seriousme/openapi-schema-validator';
import { Compile } from 'typebox/schema';
import { beforeAll, describe, expect, it } from 'vitest';
import { Contract } from '../../../test/support/contract.ts';
import { allRoutes, hollowServer, readDocument } from '../../../test/support/routes.ts';
import { problemCodes } from '../../domain/problem.ts';
import type { JsonSchema } from './components.ts';
import type { OpenApiDocument } from './document.ts';
import type { Answer, Operation } from './operation.ts';
import { tags } from './tags.ts';

let document: OpenApiDocument;
let operations: { readonly name: string; readonly path: string; readonly operation: Operation }[];

beforeAll(async () => {
  document = await readDocument();
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  );
});

/** Routes that are not part of the API: the start page, the console and the built-in receiver. */
const HIDDEN =
  /^GET \/$|^GET \/(console|docs\/guide)\b|^\w+ \/auth\/|^\w+ \/notifiers\/confirm$|\/inbox\/\{token\}$/;

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    );
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.servers).toEqual([{ url: 'https://posthorn.example' }]);
  });

  it('contains every registered route', async () => {
    const registered = (await allRoutes())
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
      .filter((name) => !HIDDEN.test(name));
    expect(operations.map(({ name }) => name).sort()).toEqual(registered.sort());
    expect(registered).toContain('POST /v1/events');
  });

  it('gives every operation a unique id, a summary and one tag', () => {
    for (const { name, operation } of operations) {
      expect(operation.operationId, `${name}: give its schema an operationId`).toMatch(/^[a-z][A-Za-z]+$/);
      expect(operation.summary, `${name}: give its schema a summary`).toMatch(/\S/);
      expect(operation.tags, `${name}: give its schema one tag`).toHaveLength(1);
      expect(Object.keys(tags), `${name}: its tag has to be in openapi/tags.ts`).toContain(operation.tags[0]);
    }
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  it('describes every parameter of a path', () => {
    for (const { name, path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      const described = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
      expect(
        described.map((parameter) => parameter.name),
        `${name}: give its schema params`,
      ).toEqual(named);
    }
  });

  it('describes the success and the failures of every operation', () => {
    for (const { name, operation } of operations) {
      const good = Object.entries(operation.responses).filter(([status]) => /^[12]/.test(status));
      expect(good.length, `${name}: describe its success in schema.response`).toBeGreaterThan(0);
      for (const [status, answer] of good) {
        const content = (answer as Exclude<Answer, { $ref: string }>).content ?? {};
        expect(Object.keys(content), `${name} ${status}`).toHaveLength(status === '204' ? 0 : 1);
      }
      if (!name.includes(' /v1/')) continue;
      expect(Object.keys(operation.responses), name).toEqual(
        expect.arrayContaining(['401', '429', 'default', ...(name.includes('{') ? ['404'] : [])]),
      );
      if (operation.requestBody !== undefined)
        expect(Object.keys(operation.responses), name).toEqual(
          expect.arrayContaining(['400', '413', '415', '422']),
        );
    }
  });

  it('lists the problem codes of every operation, each under its own status', () => {
    const contract = new Contract(document);
    for (const operation of contract.operations) {
      const problems = contract.problemsOf(operation);
      for (const { status, code } of problems)
        if (status !== 'default') expect(problemCodes[code].status, operation.name).toBe(Number(status));
      const named = new Set(problems.map(({ status }) => status));
      const failing = Object.keys(operation.operation.responses).filter((status) => !/^[123]/.test(status));
      // 503 is a regular answer of the readiness probe.
      const others = operation.name === 'getReadiness' ? ['503'] : [];
      expect(
        failing.filter((status) => !named.has(status)),
        operation.name,
      ).toEqual(others);
    }
  });

  it('gives an example with every body, and all examples match their schemas', () => {
    for (const { name, operation } of operations) {
      if (operation.requestBody === undefined) continue;
      const { $ref } = operation.requestBody.content['application/json']!.schema;
      expect($ref, `${name}: give its body a title`).toBeTypeOf('string');
      const body = document.components.schemas[String($ref).split('/').at(-1)!]!;
      expect(body.examples, `${name}: give its body examples`).toBeInstanceOf(Array);
    }
    let checked = 0;
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      const validator = Compile({ ...schema, components: document.components } as JsonSchema);
      for (const example of (schema.examples ?? []) as unknown[]) {
        const [, errors] = validator.Errors(example);
        expect({ name, errors }).toEqual({ name, errors: [] });
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan(20);
  });

  it('is sent with an ETag, and answered with 304 while it is unchanged', async () => {
    const server = await hollowServer();
    const first = await server.inject('/openapi.json');
    expect(first.headers).toMatchObject({
      'cache-control': 'no-cache',
      etag: expect.stringMatching(/^".+"$/),
    });
    const again = await server.inject({
      url: '/openapi.json',
      headers: { 'if-none-match': first.headers.etag as string },
    });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    await server.close();
  });
});
