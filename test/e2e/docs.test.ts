/**
 * Runs every command and snippet of README.md, CONTRIBUTING.md and docs/*.md as printed. Only addresses and ids differ: port
 * 8787 becomes the port of this test's server, 9000 a free port, and invented host names become real ones.
 * test/support/doc-blocks.ts explains the marks of a block.
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  type DocBlock,
  documentedFiles,
  parseHttp,
  parseJsonc,
  ROOT,
  readBlocks,
} from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { missingProgram, needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import {
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  runPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

/** The tests that run the blocks of these pages. They set up what the blocks need. */
const RUN_BY: Readonly<Record<string, string>> = {
  'docs/outbox.md': 'test/e2e/outbox-docs.test.ts',
  'docs/relay.md': 'test/extended/relay.test.ts',
};
const ILLUSTRATIONS = ['text', 'mermaid'];
const CODE_OF_OTHERS = ['python', 'go', 'java', 'ruby', 'php'];

const blocks = documentedFiles().flatMap(readBlocks);
const place = ({ file, line }: DocBlock): string => `${file}:${line}`;

describe('every block of the documentation', () => {
  test('has a language, and is run, checked, or says why not', () => {
    const known = [
      'sh',
      'sql',
      'ts',
      'js',
      'json',
      'jsonc',
      'yaml',
      'http',
      ...ILLUSTRATIONS,
      ...CODE_OF_OTHERS,
    ];
    expect(blocks.filter(({ language }) => !known.includes(language)).map(place)).toEqual([]);
    expect(blocks.length).toBeGreaterThan(40);
    const elsewhere = blocks.filter((block) => runBy(block) !== undefined);
    for (const block of elsewhere)
      expect(readFileSync(path.join(ROOT, runBy(block)!), 'utf8'), place(block)).toContain(block.file);
    const nobodys = blocks.filter(
      (block) =>
        [...CODE_OF_OTHERS, 'sql'].includes(block.language) && runBy(block) === undefined && !noRun(block),
    );
    expect(nobodys.filter(({ file }) => file !== 'README.md').map(place)).toEqual([]);
  });

  test.each(
    blocks.filter(({ language }) => language === 'sh').map((block) => [place(block), block] as const),
  )('is a valid shell script: %s', (_place, { text }) => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  test('is valid JSON or YAML if it has that language', () => {
    for (const block of blocks) {
      const parse = { json: JSON.parse, jsonc: parseJsonc, yaml: parseYaml, http: parseHttp }[block.language];
      expect(() => parse?.(block.text), place(block)).not.toThrow();
    }
  });
});

function runBy({ file, language, options }: DocBlock): string | undefined {
  if (options['run-by'] !== undefined) return options['run-by'];
  return language === 'sql' || CODE_OF_OTHERS.includes(language) ? RUN_BY[file] : undefined;
}
const noRun = ({ options }: DocBlock): boolean => options['no-run'] !== undefined;

let posthorn: TestPosthorn;
let folder: string;
let database: TestDatabase;
let shop: TestDatabase;
let receiverPort: number;
/** For the servers that blocks start. */
let serverPort: number;
let dead: { readonly id: string; readonly endpoint_id: string };

beforeAll(async () => {
  folder = await temporaryDirectory('posthorn-docs-');
  [database, shop, receiverPort, serverPort] = await Promise.all([
    createTestDatabase(),
    createTestDatabase({ empty: true }),
    freePort(),
    freePort(),
  ]);
  await shop.query('create table orders (id int, total numeric)');
  // A folder in which `npx posthorn` is this Posthorn, and `.posthorn` is where `npm start` would put it.
  await mkdir(path.join(folder, 'node_modules/.bin'), { recursive: true });
  await writeFile(path.join(folder, 'package.json'), '{"private": true}');
  const command = `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`;
  await writeFile(path.join(folder, 'node_modules/.bin/posthorn'), command, { mode: 0o755 });
  // curl succeeds also with a 404, unless it is told otherwise.
  await writeFile(path.join(folder, '.curlrc'), 'fail-with-body\nshow-error\n');
  posthorn = await runPosthorn(['dev'], { PORT: '0' }, undefined, { cwd: folder });
  dead = await deadLetter();
});
afterAll(async () => {
  await posthorn?.stop();
  await Promise.all([database?.drop(), shop?.drop()]);
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function deadLetter() {
  const { id } = await createEndpoint(posthorn, {
    url: 'http://127.0.0.1:1/',
    tenant: 'default',
    retry: { schedule: [0] },
  });
  const event = await publish(posthorn, { type: 'a', data: 1, endpoint_ids: [id] });
  return (await untilDeliveries(posthorn, event.id, 'dead'))[0]!;
}

/** Replaces the addresses and ids of the documentation with those of this run. */
function fillIn(text: string): string {
  return text
    .replaceAll(/(127\.0\.0\.1|localhost):8787/g, new URL(posthorn.url).host)
    .replaceAll(/\b9000\b/g, String(receiverPort))
    .replaceAll('dlv_…', dead.id)
    .replaceAll('ep_…', dead.endpoint_id)
    .replaceAll(/postgres:\/\/\S*@db\/posthorn/g, database.url)
    .replaceAll(/postgres:\/\/\S*@shop-db\/shop/g, shop.url);
}

function start(text: string) {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', text], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      npm_config_offline: 'true',
      ...TEST_SETTINGS,
      PORT: String(serverPort),
      DATABASE_URL: database.url,
      KEY: posthorn.key,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  const ended = new Promise<number | string | null>((resolve) => {
    child.on('close', (code, signal) => resolve(signal ?? code));
  });
  const stop = async (): Promise<void> => {
    try {
      process.kill(-child.pid!, 'SIGTERM');
    } catch {
      // It has ended by itself.
    }
    await ended;
  };
  return { ended, stop, output: () => output };
}

/** Programs of the commands that not every machine has. */
function missingFor({ text, options }: DocBlock): string | null {
  const used = ['curl', 'openssl'].filter((program) => new RegExp(`\\b${program} `).test(text));
  return missingProgram(...used, ...(options.needs === undefined ? [] : [options.needs]));
}
const runnable = blocks.filter(
  (block) => block.language === 'sh' && !noRun(block) && runBy(block) === undefined,
);

describe.each([...new Set(runnable.map(({ file }) => file))])('%s', (file) => {
  const inBackground: { block: DocBlock; process: ReturnType<typeof start> }[] = [];
  afterAll(async () => {
    for (const { process: running } of inBackground) await running.stop();
  });

  const blocksOfFile = runnable.filter((block) => block.file === file);
  for (const block of blocksOfFile)
    test(`the commands in line ${block.line} work as printed`, needs(missingFor(block)), async () => {
      const { terminal, until, prints } = block.options;
      const running = start(fillIn(block.text));
      if (terminal !== undefined) {
        inBackground.push({ block, process: running });
        await eventually('the receiver listens', () =>
          fetch(`http://127.0.0.1:${receiverPort}/`).catch(() => null),
        );
        return;
      }
      onTestFinished(running.stop);
      if (until === undefined) expect(await running.ended, running.output()).toBe(0);
      else
        await eventually(`it prints ${until}`, () => running.output().includes(until), {
          timeoutMs: 30_000,
          saw: running.output,
        });
      if (prints !== undefined) expect(running.output()).toContain(prints);
    });

  const missing = blocksOfFile.map(missingFor).find((each) => each !== null) ?? null;
  test('background commands print the expected output', needs(missing), async () => {
    for (const { block, process: running } of inBackground)
      await eventually(`${place(block)} prints`, () => running.output().includes(block.options.prints!), {
        saw: running.output,
      });
  });
});

describe('the requests to the API', () => {
  const requests = blocks.filter(
    (block) => block.language === 'http' && !noRun(block) && runBy(block) === undefined,
  );
  test.each(requests.map((block) => [place(block), block] as const))('%s', async (_place, { text }) => {
    const { method, path: target, body, answer } = parseHttp(text);
    const given = await posthorn.api(method, target, body);
    expect(given.status, given.text).toBeLessThan(300);
    if (answer !== undefined) expect(given.body).toMatchObject(withWildcards(answer) as object);
  });
});

/** A text that ends in "…" stands for any text that begins like it. */
function withWildcards(value: unknown): unknown {
  if (typeof value === 'string' && value.endsWith('…'))
    return expect.stringMatching(new RegExp(`^${value.slice(0, -1)}`));
  if (Array.isArray(value)) return value.map(withWildcards);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withWildcards(each)]));
}

test('README.md: the SQL publishes in the transaction of the caller', async () => {
  const [block] = blocks.filter(({ file, language }) => file === 'README.md' && language === 'sql');
  await database.query('create table if not exists orders (item text, amount int)');
  await database.query(block!.text);
  expect(await database.query('select type from posthorn.outbox')).toEqual([{ type: 'order.created' }]);
});

describe('the programs', () => {
  const programs = blocks.filter(
    (block) => ['ts', 'js'].includes(block.language) && !noRun(block) && runBy(block) === undefined,
  );
  test.each(programs.map((block) => [place(block), block] as const))('%s', async (_place, block) => {
    const receiver = await newReceiver();
    const { secret } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant: 'acme',
      events: ['docs.*'],
    });
    await publish(posthorn, { type: 'docs.program', tenant: 'acme', data: 1 });
    const [webhook] = await receiver.waitFor(1);
    // Inside the repository, so that Node finds its packages. `AROUND` adds what the snippet assumes.
    const name = path.join(ROOT, 'tmp', `docs-${process.pid}-${block.line}.mts`);
    await mkdir(path.dirname(name), { recursive: true });
    onTestFinished(() => rm(name, { force: true }));
    const [before, after] = AROUND[block.file] ?? ['', ''];
    await writeFile(name, `${before}\n${block.text}\n${after}\n`);
    const output = execFileSync(process.execPath, ['--conditions=posthorn-source', name], {
      encoding: 'utf8',
      env: {
        ...TEST_SETTINGS,
        DATABASE_URL: database.url,
        SECRET: secret,
        BODY: webhook!.body.toString(),
        HEADERS: JSON.stringify(webhook!.headers),
      },
    });
    expect(output).toBe('');
  });
});

/** What the reader's own program has around the snippet. */
const AROUND: Readonly<Record<string, readonly [before: string, after: string]>> = {
  'README.md': [
    `
    const { SECRET: secret, BODY: rawBody } = process.env;
    const headers = JSON.parse(process.env.HEADERS);`,
    '',
  ],
  'docs/outbox.md': [
    `
    import { drizzle } from 'drizzle-orm/node-postgres';
    import { integer, pgTable } from 'drizzle-orm/pg-core';
    import pg from 'pg';
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
    await pool.query('create table if not exists drizzle_orders (id int)');
    const db = drizzle(pool);
    const orders = pgTable('drizzle_orders', { id: integer() });
    const order = { id: 7 };`,
    'await pool.end();',
  ],
};
