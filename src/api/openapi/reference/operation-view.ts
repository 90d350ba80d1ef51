import type { JsonSchema } from '../components.ts';
import type { OpenApiDocument } from '../document.ts';
import type { Answer, Operation } from '../operation.ts';
import { type Html, html, inline, prose } from './html.ts';
import type { Entry } from './page.ts';
import { fieldTable, nameOf, rowsOf, typeOf } from './schema-view.ts';

export function operationView({ method, path, operation }: Entry, document: OpenApiDocument): Html {
  const { parameters = [], requestBody, description } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const resolved = body && resolve(body, document);
  return html`<article class="operation" id="${operation.operationId}">
<h3><a class="anchor" href="#${operation.operationId}" aria-hidden="true" tabindex="-1">#</a>${operation.summary}</h3>
<p class="address"><span class="method ${method.toLowerCase()}">${method}</span> <code>${withBreaks(path)}</code> <span class="keys">${KEYS[operation.security[0]?.key[0] ?? 'none']}</span></p>
${description !== undefined && prose(description)}
${
  parameters.length > 0 &&
  html`<h4>Parameters</h4>${fieldTable(
    parameters.map(({ name, in: place, required, schema, description: meaning = '' }) => ({
      name,
      required,
      schema,
      description: place === 'query' ? meaning : `${meaning} In the ${place}.`.trim(),
    })),
  )}`
}
${
  body !== undefined &&
  resolved !== undefined &&
  html`<h4>Body${requestBody?.required === true ? '' : ' (optional)'}: ${typeOf(body)}</h4>
<details${rowsOf(resolved).length <= OPEN_UP_TO ? html` open` : ''}><summary>${rowsOf(resolved).length} fields</summary>${fieldTable(rowsOf(resolved))}</details>`
}
<h4>Example</h4>
<pre tabindex="0"><code>${curl(method, path, operation, resolved, document)}</code></pre>
<h4>Answers</h4>
${answersView(operation.responses)}
</article>`;
}

const OPEN_UP_TO = 10;

/** Which keys may call it. */
const KEYS = {
  none: 'no key needed',
  read: 'any key',
  write: 'admin or tenant key',
  admin: 'admin key',
} as const;

/** Lets long paths break at their slashes on a narrow screen. */
function withBreaks(path: string): Html {
  return html`${path.split('/').map((part, index) => (index === 0 ? part : html`/<wbr>${part}`))}`;
}

/** The problems of this operation. Those of every route of its kind are explained once, under Problems. */
function answersView(answers: Readonly<Record<string, Answer>>): Html {
  const shared = Object.entries(answers).flatMap(([status, answer]) =>
    '$ref' in answer && status !== 'default' ? answer.$ref.split('.').slice(1) : [],
  );
  return html`<dl class="answers">${Object.entries(answers).map(([status, answer]) =>
    '$ref' in answer ? '' : answerView(status, answer),
  )}${
    shared.length > 0 &&
    html`<div class="bad"><dt><a href="#problems">also</a></dt>
<dd>${codeLinks(shared)}</dd></div>`
  }</dl>`;
}

export const problemAnchor = (code: string): string => `problem-${code}`;

export function codeLinks(codes: readonly string[]): Html {
  return html`${codes.map(
    (code, index) => html`${index > 0 ? ', ' : ''}<a href="#${problemAnchor(code)}"><code>${code}</code></a>`,
  )}`;
}

function answerView(status: string, answer: Exclude<Answer, { $ref: string }>): Html {
  const kind = status.startsWith('2') ? 'good' : 'bad';
  return html`<div class="${kind}"><dt>${status}</dt>
<dd>${inline(answer.description)}${Object.entries(answer.content ?? {}).map(
    ([type, { schema }]) =>
      html` ${typeOf(schema)}${type === 'application/json' || type === PROBLEM ? '' : ` (${type})`}`,
  )}</dd></div>`;
}
const PROBLEM = 'application/problem+json';

function resolve(schema: JsonSchema, document: OpenApiDocument): JsonSchema {
  const name = nameOf(schema);
  return name === null ? schema : (document.components.schemas[name] ?? {});
}

function curl(
  method: string,
  path: string,
  operation: Operation,
  body: JsonSchema | undefined,
  document: OpenApiDocument,
): string {
  const address = path.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = operation.parameters?.find((candidate) => candidate.name === name);
    const [example] = (parameter?.schema.examples ?? []) as string[];
    return example ?? whole;
  });
  const [example] = (body?.examples ?? []) as unknown[];
  const needsKey = operation.security.length > 0;
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${document.servers[0]?.url}${address}`,
    ...(needsKey ? ['-H "Authorization: Bearer $POSTHORN_KEY"'] : []),
    ...(example === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${indentJson(example).replaceAll("'", "'\\''")}'`]),
  ].join(' \\\n  ');
}

const indentJson = (value: unknown): string => JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');
