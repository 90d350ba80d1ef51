/** The language server follows the calls that docs/architecture.md names, as a reader's editor does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const docs = path.join(root, 'docs');

interface Step {
  readonly number: number;
  readonly file: string;
  readonly from: number;
  readonly request: 'textDocument/definition' | 'textDocument/implementation';
  /** Null in the first step. */
  readonly call: string | null;
}

const STEP = /^(\d+)\. \[`[^`]+`\]\(([^)]+)\): .*?(?:\((?:from (\d+): )?(\*impl\.\* )?`([\w.]+)`\))?$/gm;

const steps: Step[] = [...readFileSync(path.join(docs, 'architecture.md'), 'utf8').matchAll(STEP)].map(
  ([, number, file, from, isImplementation, call]) => ({
    number: Number(number),
    file: path.join(docs, file!),
    from: Number(from ?? Number(number) - 1),
    request: isImplementation ? 'textDocument/implementation' : 'textDocument/definition',
    call: call ?? null,
  }),
);

class LanguageServer {
  readonly #process: ChildProcess = spawn(path.join(root, 'node_modules/.bin/tsc'), ['--lsp', '--stdio'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  readonly #answers = new Map<number, (message: { result?: unknown; error?: unknown }) => void>();
  #received = Buffer.alloc(0);
  #requests = 0;

  constructor() {
    this.#process.stdout!.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#readMessages();
    });
  }

  async stop(): Promise<void> {
    this.#process.kill();
    await once(this.#process, 'exit');
  }

  notify(method: string, params: unknown): void {
    this.#send({ method, params });
  }

  async request(method: string, params: unknown): Promise<unknown> {
    this.#requests += 1;
    const id = this.#requests;
    const answered = new Promise<{ result?: unknown; error?: unknown }>((resolve) => {
      this.#answers.set(id, resolve);
    });
    this.#send({ id, method, params });
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  #send(message: object): void {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.#process.stdin!.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  #readMessages(): void {
    for (;;) {
      const headerEnd = this.#received.indexOf('\r\n\r\n');
      if (headerEnd === -1) return;
      const length = Number(
        /Content-Length: (\d+)/.exec(this.#received.toString('latin1', 0, headerEnd))![1],
      );
      const end = headerEnd + 4 + length;
      if (this.#received.length < end) return;
      const message = JSON.parse(this.#received.toString('utf8', headerEnd + 4, end));
      this.#received = this.#received.subarray(end);
      // The server asks for settings that this client does not have.
      if (message.method !== undefined && message.id !== undefined)
        this.#send({ id: message.id, result: null });
      else if (message.id !== undefined) this.#answers.get(message.id)?.(message);
    }
  }
}

let server: LanguageServer;
const opened = new Set<string>();

beforeAll(async () => {
  server = new LanguageServer();
  const rootUri = pathToFileURL(root).href;
  await server.request('initialize', { processId: process.pid, rootUri, capabilities: {} });
  server.notify('initialized', {});
});

afterAll(() => server.stop());

/** Returns the files that contain what the request finds for `call`, at its first place in `file`. */
async function follow(file: string, call: string, request: Step['request']): Promise<string[]> {
  const text = readFileSync(file, 'utf8');
  const uri = pathToFileURL(file).href;
  if (!opened.has(file)) {
    opened.add(file);
    server.notify('textDocument/didOpen', {
      textDocument: { uri, languageId: 'typescript', version: 1, text },
    });
  }
  const pattern = call.includes('.') ? `\\b${call.replaceAll('.', '\\.')}\\(` : `(?<![.\\w])${call}\\(`;
  const place = new RegExp(pattern).exec(text);
  expect(place, `${file} calls ${call}`).not.toBeNull();
  const before = text.slice(0, place!.index + place![0].length - 1).split('\n');
  const position = { line: before.length - 1, character: before.at(-1)!.length - 1 };
  const found = (await server.request(request, { textDocument: { uri }, position })) as { uri: string }[];
  return [found ?? []].flat().map((location) => fileURLToPath(location.uri));
}

it('docs/architecture.md leads from a request to its history through at most 15 files', async () => {
  expect(steps.map(({ number }) => number)).toEqual(steps.map((_, index) => index + 1));
  expect(steps.length).toBeLessThanOrEqual(15);
  const [first, ...others] = steps;
  expect(path.relative(root, first!.file)).toBe('src/api/events/publish-routes.ts');
  expect(path.relative(root, others.at(-1)!.file)).toBe('src/postgres/queries/settle-deliveries.ts');
  for (const { file, from, request, call } of others)
    expect(await follow(steps[from - 1]!.file, call!, request), call!).toContain(file);
});
