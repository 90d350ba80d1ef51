/** SIG-6: the published package works: both builds, the types and the code in the README, with WebCrypto only. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../../test/support/receiver.ts';
import type * as Package from '../src/index.ts';
import {
  createProject,
  forwardRequest,
  type Project,
  readReadmeFiles,
  runServer,
} from './testing/installed.ts';
import { deliver, SECRET, secrets } from './testing/signing.ts';

let project: Project;
let delivered: RecordedRequest;
let forged: RecordedRequest;
const files = readReadmeFiles();
beforeAll(async () => {
  project = createProject();
  delivered = await deliver(secrets(SECRET));
  forged = { ...delivered, body: Buffer.from('{"data":{"order":2}}') };
  for (const [file, code] of files) project.write(file, code);
});
afterAll(() => project.remove());

const installedPath = (...parts: string[]): string =>
  path.join(project.directory, 'node_modules/@posthorn/verify', ...parts);
const readManifest = () => JSON.parse(readFileSync(installedPath('package.json'), 'utf8'));

describe('published package', () => {
  it('has no dependencies, and every exported file exists', () => {
    const { dependencies, peerDependencies, exports, main, types, module, sideEffects } = readManifest();
    expect([dependencies, peerDependencies, sideEffects]).toEqual([undefined, undefined, false]);
    const named = JSON.stringify([exports, main, types, module]).match(/\.\/[^"]+\.[a-z.]+/g)!;
    expect(named.length).toBeGreaterThan(20);
    for (const file of named) expect(existsSync(installedPath(file)), file).toBe(true);
  });

  it('imports only its own files, and uses no Node globals', () => {
    for (const kind of ['esm', 'cjs']) {
      const sources = readdirSync(installedPath('dist', kind)).filter((file) => file.endsWith('.js'));
      expect(sources.length).toBeGreaterThan(10);
      for (const file of sources) {
        const code = readFileSync(installedPath('dist', kind, file), 'utf8').replace(
          /\/\*[\s\S]*?\*\/|\/\/.*/g,
          '',
        );
        const imports = [...code.matchAll(/(?:from |require\(|import\()["']([^"']+)["']/g)].map((m) => m[1]!);
        expect(
          imports.filter((name) => !/^\.\/[a-z-]+\.js$/.test(name)),
          file,
        ).toEqual([]);
        expect(code, file).not.toMatch(/\b(process|Buffer|__dirname|setImmediate)\b/);
      }
    }
  });

  it('can be required and imported, with the same exports', () => {
    const script = `
      const required = require('@posthorn/verify');
      import('@posthorn/verify').then(async (imported) => {
        const names = (module) => Object.keys(module).filter((name) => !['default', 'module.exports', '__esModule'].includes(name)).sort().join();
        if (names(required) !== names(imported)) throw new Error(names(required) + ' is not ' + names(imported));
        for (const entry of ['express', 'fastify', 'hono', 'web']) {
          const a = require('@posthorn/verify/' + entry);
          const b = await import('@posthorn/verify/' + entry);
          if (names(a) !== names(b)) throw new Error(entry);
        }
        console.log(names(imported));
      });`;
    const file = project.write('both.cjs', script);
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toContain('createVerifier');
  });

  it('runs with WebCrypto, text encoding and atob as the only globals', async () => {
    const globals = { crypto, TextEncoder, TextDecoder, atob };
    const sandbox = createContext({ ...globals });
    const loaded = new Map<string, object>();
    const load = (file: string): object => {
      const known = loaded.get(file);
      if (known !== undefined) return known;
      const module = { exports: {} };
      loaded.set(file, module.exports);
      const code = readFileSync(installedPath('dist/cjs', file), 'utf8');
      runInContext(`(function (exports, module, require) {${code}\n})`, sandbox)(
        module.exports,
        module,
        load,
      );
      return module.exports;
    };
    const { createVerifier } = load('index.js') as typeof Package;
    const webhook = await createVerifier({ secret: SECRET }).verify(
      delivered.body.toString(),
      delivered.headers,
    );
    expect(webhook.id).toBe(delivered.headers['webhook-id']);
  });
});

describe('README', () => {
  it('has code for every framework', () => {
    expect([...files.keys()]).toEqual([
      'express.ts',
      'fastify.ts',
      'hono.ts',
      'app/webhooks/route.ts',
      'worker.ts',
      'plain.ts',
      'once.ts',
      'transaction.ts',
    ]);
  });

  it('its code compiles as ES module and as CommonJS', () => {
    project.write(
      'commonjs.cts',
      `import verify = require('@posthorn/verify');
       const reason: verify.VerificationReason = 'signature_mismatch';
       const verifier: verify.Verifier = verify.createVerifier({ secret: reason });
       export = verifier;`,
    );
    project.typecheck();
  });

  it.each(['express.ts', 'fastify.ts', 'hono.ts', 'plain.ts'])('%s works', async (file) => {
    const server = await runServer(path.join(project.directory, file), { WEBHOOK_SECRET: SECRET });
    try {
      expect((await forwardRequest(`${server.url}/webhooks`, delivered)).status).toBe(204);
      expect((await forwardRequest(`${server.url}/webhooks`, forged)).status).toBe(401);
      expect(server.output().match(/received/g)).toHaveLength(1);
      expect(server.output()).toContain(`received ${delivered.headers['webhook-id']} order.created`);
    } finally {
      await server.stop();
    }
  });

  it.each(['app/webhooks/route.ts', 'worker.ts'])('%s works', async (file) => {
    const request = ({ body, headers }: RecordedRequest) =>
      `new Request('http://x/webhooks', { method: 'POST', body: ${JSON.stringify(body.toString())}, headers: ${JSON.stringify(headers)} })`;
    const module = JSON.stringify(pathToFileURL(path.join(project.directory, file)).href);
    const script = `
      const module = await import(${module});
      const handle = module.POST ?? module.default.fetch;
      const env = { WEBHOOK_SECRET: process.env.WEBHOOK_SECRET };
      for (const request of [${request(delivered)}, ${request(forged)}]) console.log((await handle(request, env)).status);`;
    const main = project.write('call.mjs', script);
    const output = execFileSync(process.execPath, [main], {
      encoding: 'utf8',
      env: { WEBHOOK_SECRET: SECRET },
    });
    expect(output).toMatch(new RegExp(`^received ${delivered.headers['webhook-id']} .*\\n204\\n401\\n$`));
  });
});
