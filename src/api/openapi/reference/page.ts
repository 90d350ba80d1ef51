/** Renders the document as one HTML page, without scripts and external files. */
import { createHash } from 'node:crypto';
import { problemCodes } from '../../../domain/problem.ts';
import type { JsonSchema } from '../components.ts';
import type { OpenApiDocument } from '../document.ts';
import { unexpectedProblems } from '../implied-problems.ts';
import type { Operation } from '../operation.ts';
import { type Html, html, inline, prose } from './html.ts';
import { codeLinks, operationView, problemAnchor } from './operation-view.ts';
import { fieldTable, rowsOf, schemaAnchor, typeOf } from './schema-view.ts';
import { STYLE } from './style.ts';

/** The page may load nothing. The policy allows its style by a hash. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const anchorOf = (tag: string): string => tag.toLowerCase().replaceAll(' ', '-');

export function renderReference(document: OpenApiDocument): string {
  const entries: Entry[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const chapters = document.tags.map(({ name, description }) => ({
    name,
    description,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const { info, components } = document;
  // No white space before </style>: the hash is of exactly this text.
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
<link rel="icon" href="data:,">
<style>${rawStyle}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the reference</a>
<nav aria-label="Chapters">
<p class="brand"><a href="#content">${info.title}</a> <span>API ${info.version}</span></p>
<p><a href="/docs/guide">Guide</a></p>
<ul>${chapters.map(
    (chapter) => html`<li><a class="chapter" href="#${anchorOf(chapter.name)}">${chapter.name}</a>
<ul>${chapter.entries.map(
      ({ operation }) => html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`,
    )}</ul></li>`,
  )}<li><a class="chapter" href="#problems">Problems</a></li>
<li><a class="chapter" href="#schemas">Schemas</a></li></ul>
</nav>
<main id="content">
<header><h1>API reference</h1>${prose(info.description)}
<p>The same as an <a href="/openapi.json">OpenAPI 3.1 document</a>. Base address: <code>${document.servers[0]?.url}</code></p></header>
${chapters.map(
  (chapter) => html`<section id="${anchorOf(chapter.name)}" class="tag">
<h2>${chapter.name}</h2>${prose(chapter.description)}
<ul class="index">${chapter.entries.map(
    ({ method, path, operation }) => html`<li><a href="#${operation.operationId}">
<span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></a> <span class="what">${operation.summary}</span></li>`,
  )}</ul>
${chapter.entries.map((entry) => operationView(entry, document))}</section>`,
)}
<section id="problems" class="tag"><h2>Problems</h2>
<p>Every error is a ${typeOf({ $ref: '#/components/schemas/Problem' })} with one of these codes. Any request may be answered
${codeLinks(unexpectedProblems)}.</p>
<dl class="answers">${Object.entries(problemCodes).map(
    ([code, { status, title }]) => html`<div class="bad" id="${problemAnchor(code)}"><dt>${status}</dt>
<dd><code>${code}</code>: ${title}.</dd></div>`,
  )}</dl></section>
<section id="schemas" class="tag"><h2>Schemas</h2>
${Object.entries(components.schemas).map(([name, schema]) => schemaView(name, schema))}</section>
</main>
</body>
</html>
`;
  return page.text;
}

const rawStyle = html([STYLE] as unknown as TemplateStringsArray);

function schemaView(name: string, schema: JsonSchema): Html {
  const rows = rowsOf(schema);
  const [example] = (schema.examples ?? []) as unknown[];
  return html`<article class="schema" id="${schemaAnchor(name)}"><h3>${name}</h3>
${typeof schema.description === 'string' && html`<p>${inline(schema.description)}</p>`}
${rows.length > 0 ? fieldTable(rows) : html`<p>${typeOf(schema)}</p>`}
${
  example !== undefined &&
  html`<details><summary>Example</summary><pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre></details>`
}</article>`;
}
