/** Generates the client's types and methods from the OpenAPI document. */
import type { JsonSchema } from '../src/api/openapi/components.ts';
import type { OpenApiDocument } from '../src/api/openapi/document.ts';
import type { Operation, Parameter } from '../src/api/openapi/operation.ts';

interface Route {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const HEAD = `/**
 * Written by \`npm run client:generate\` from the OpenAPI document: do not edit.
 */
import { type PageRequest, Resource } from './resource.ts';
import type { RequestOptions, Transport } from './transport.ts';

/** A time in RFC 3339 and UTC. */
export type Time = string;
`;

export function clientCode(document: OpenApiDocument): string {
  const routes: Route[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const callableRoutes = routes.filter((route) => responseType(route) !== null);
  const types = Object.entries(document.components.schemas).map(([name, schema]) =>
    typeDeclaration(name, schema),
  );
  const resources = document.tags
    .map(({ name, description }) => ({
      name,
      description,
      routes: callableRoutes.filter(({ operation }) => operation.tags.includes(name)),
    }))
    .filter((resource) => resource.routes.length > 0);
  const classes = resources.map((resource) => resourceClass(resource, document));
  const names = resources.map(({ name }) => name);
  return `${[HEAD.trimEnd(), ...types, ...classes, rootClass(names)].join('\n\n')}\n`;
}

function rootClass(tags: readonly string[]): string {
  const names = tags.map((tag) => [fieldName(tag), className(tag)] as const);
  return `/** The whole API. */
export class Resources {
${names.map(([field, type]) => `  readonly ${field}: ${type};`).join('\n')}

  constructor(transport: Transport) {
${names.map(([field, type]) => `    this.${field} = new ${type}(transport);`).join('\n')}
  }
}`;
}

const fieldName = (tag: string): string => className(tag).replace(/^./, (letter) => letter.toLowerCase());

/** `Dead letters` → `DeadLetters` */
const className = (tag: string): string =>
  tag
    .split(' ')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('');

/** Removes the resource's name from an operation id: `listEndpoints` of `endpoints` becomes `list`. */
export function methodName(operationId: string, tag: string): string {
  const plural = className(tag);
  const singular = plural.replace(/ies$/, 'y').replace(/s$/, '');
  return operationId.replace(new RegExp(`(${plural}|${singular})(?=[A-Z]|$)`), '');
}

interface ResourceRoutes {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

function resourceClass({ name, description, routes }: ResourceRoutes, document: OpenApiDocument): string {
  const methods = routes.map((route) => methodCode(route, name, document));
  return `${comment(description, '')}export class ${className(name)} extends Resource {\n${methods.join('\n\n')}\n}`;
}

function methodCode(route: Route, tag: string, document: OpenApiDocument): string {
  const { method, path, operation } = route;
  const { parameters = [], requestBody, summary, description } = operation;
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const body = requestBody?.content['application/json']?.schema;
  const required = requestBody?.required === true;
  const page = pageItemType(route, document);
  const signature = [
    ...parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `${name}: string`),
    ...(body === undefined ? [] : [`body: ${typeOf(body)}${required ? '' : ' = {}'}`]),
    ...(query.length === 0 ? [] : [`query: ${queryType(query)} = {}`]),
    'options?: RequestOptions',
  ];
  const keyed = parameters.some(({ name }) => name.toLowerCase() === 'idempotency-key');
  const call = [
    `'${method}'`,
    `\`${path.replace(/\{(\w+)\}/g, '$' + '{encodeURIComponent($1)}')}\``,
    `{ ${[
      ...(body === undefined ? [] : ['body']),
      ...(query.length === 0 ? [] : ['query']),
      ...(keyed ? ['keyed: true'] : []),
      ...(method === 'POST' && operation.security[0]?.key[0] === 'read' ? ['reads: true'] : []),
    ].join(', ')} }`.replace('{  }', '{}'),
    'options',
  ];
  const response = responseType(route)!;
  return `${comment([`${summary}.`.replace('?.', '?'), description ?? ''].filter(Boolean).join(' '), '  ')}  ${methodName(operation.operationId, tag)}(${signature.join(', ')}): ${page === null ? `Promise<${response}>` : `PageRequest<${page}>`} {
    return this.${page === null ? 'call' : 'pages'}(${call.join(', ')});
  }`;
}

function queryType(query: readonly Parameter[]): string {
  return `{ ${query
    .map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema)}`)
    .join('; ')} }`;
}

/** The type of a successful response; null for a stream, which the client does not read. */
function responseType({ operation }: Route): string | null {
  const types = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => {
      const { content } = '$ref' in response ? {} : response;
      if (content === undefined) return 'void';
      const [[type, { schema }]] = Object.entries(content) as [[string, { schema: JsonSchema }]];
      if (type === 'text/event-stream') return null;
      return type.endsWith('json') ? typeOf(schema) : 'string';
    });
  return types.includes(null) ? null : [...new Set(types)].join(' | ');
}

/** The type of a list's items; null if the response is not a page. */
function pageItemType({ operation }: Route, document: OpenApiDocument): string | null {
  const response = operation.responses['200'];
  if (response === undefined || '$ref' in response) return null;
  const { $ref } = response.content?.['application/json']?.schema ?? {};
  const schema = typeof $ref === 'string' ? document.components.schemas[$ref.split('/').at(-1)!] : undefined;
  const properties = (schema?.properties ?? {}) as Record<string, JsonSchema>;
  if (properties.next_cursor === undefined || properties.data === undefined) return null;
  return typeOf(properties.data.items as JsonSchema);
}

function typeDeclaration(name: string, schema: JsonSchema): string {
  const intro = typeof schema.description === 'string' ? comment(schema.description, '') : '';
  if (Object.keys(schema.properties ?? {}).length === 0)
    return `${intro}export type ${name} = ${typeOf(schema)};`;
  return `${intro}export interface ${name} ${objectType(schema, '')}`;
}

function typeOf(schema: JsonSchema, indent = ''): string {
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1)!;
  if (Array.isArray(schema.anyOf))
    return [...new Set((schema.anyOf as JsonSchema[]).map((part) => typeOf(part, indent)))].join(' | ');
  if (Array.isArray(schema.allOf))
    return (schema.allOf as JsonSchema[]).map((part) => typeOf(part, indent)).join(' & ');
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => literal(value)).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  switch (schema.type) {
    case 'string':
      return schema.format === 'date-time' ? 'Time' : 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array': {
      const items = typeOf((schema.items ?? {}) as JsonSchema, indent);
      return /[|]/.test(items) ? `(${items})[]` : `${items}[]`;
    }
    case 'object':
      return objectType(schema, indent);
    default:
      return 'unknown';
  }
}

function objectType(schema: JsonSchema, indent: string): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (properties.length === 0) {
    const values = schema.additionalProperties;
    return `Record<string, ${typeof values === 'object' ? typeOf(values as JsonSchema, indent) : 'unknown'}>`;
  }
  const required = new Set(schema.required as string[] | undefined);
  const inner = `${indent}  `;
  const fields = properties.map(([name, part]) => {
    const field = /^[a-z_]\w*$/i.test(name) ? name : literal(name);
    const description = typeof part.description === 'string' ? comment(part.description, inner) : '';
    return `${description}${inner}${field}${required.has(name) ? '' : '?'}: ${typeOf(part, inner)};`;
  });
  return `{\n${fields.join('\n')}\n${indent}}`;
}

const literal = (value: unknown): string =>
  typeof value === 'string'
    ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    : JSON.stringify(value);

const comment = (text: string, indent: string): string =>
  `${indent}/** ${text.replaceAll('*/', '* /').replaceAll('\n', ' ')} */\n`;
