/**
 * The fenced blocks of the documentation. The info string after the language says how a test treats a block; GitHub
 * does not show it:
 *
 *   ```sh                                runs it in bash, and it must succeed
 *   ```sh until="is running"             runs it until it prints that, then stops it
 *   ```sh terminal="2"                   runs it beside the following blocks of the file
 *   ```sh needs="psql"                   runs it where that program is installed
 *   ```sh run-by="test/extended/x.ts"    another test runs it, as printed
 *   ```sh no-run="needs Docker"          only checks its syntax
 *   … prints="evt_"                      its output must contain that
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface DocBlock {
  readonly file: string;
  /** The line of the opening fence. */
  readonly line: number;
  readonly language: string;
  readonly options: Readonly<Record<string, string>>;
  readonly text: string;
}

/** README, CONTRIBUTING and the pages in docs, without the decision records, which describe the past. */
export function documentedFiles(): string[] {
  const docs = ['docs', 'docs/operate'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  );
  return ['README.md', 'CONTRIBUTING.md', ...docs];
}

export function readBlocks(file: string): DocBlock[] {
  const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n');
  const blocks: DocBlock[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const fence = /^( *)```(\S*) ?(.*)$/.exec(lines[index]!);
    if (fence === null) continue;
    const [, indent = '', language = '', info = ''] = fence;
    const end = lines.findIndex((line, at) => at > index && line.trim() === '```');
    if (end === -1) throw new Error(`${file}:${index + 1}: the block does not end.`);
    blocks.push({
      file,
      line: index + 1,
      language,
      options: readOptions(info),
      text: lines
        .slice(index + 1, end)
        .map((line) => line.slice(indent.length))
        .join('\n'),
    });
    index = end;
  }
  return blocks;
}

function readOptions(info: string): Record<string, string> {
  return Object.fromEntries(
    [...info.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
  );
}

/** The JSON values of a block, one after another. Throws if one is not JSON. */
export function parseJsonc(text: string): unknown[] {
  const withoutComments = text.replace(/("(?:\\.|[^"\\])*")|\/\/[^\n]*/g, '$1');
  const values: unknown[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of withoutComments.matchAll(/"(?:\\.|[^"\\])*"|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    if (depth > 0) continue;
    values.push(JSON.parse(withoutComments.slice(start, index + token.length)));
    start = index + token.length;
  }
  if (withoutComments.slice(start).trim() !== '')
    throw new Error(`Not JSON: ${withoutComments.slice(start)}`);
  return values;
}

export interface HttpExample {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  /** Undefined: any success is accepted. */
  readonly answer: unknown;
}

/** "POST /v1/x", a JSON body; then, after an empty line, the JSON of the answer. Both are optional. */
export function parseHttp(text: string): HttpExample {
  const [request = '', answer] = text.split(/\n\n/);
  const [, method, target, body = ''] = /^([A-Z]+) (\S+)\n?([\s\S]*)$/.exec(request) ?? [];
  if (method === undefined || target === undefined) throw new Error(`Not a request: ${request}`);
  return {
    method,
    path: target,
    body: body.trim() === '' ? undefined : parseJsonc(body)[0],
    answer: answer === undefined ? undefined : parseJsonc(answer)[0],
  };
}
