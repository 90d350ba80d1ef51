/** The package as users get it: built, and installed in another project. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordedRequest } from '../../../../test/support/receiver.ts';

const PACKAGE = path.resolve(import.meta.dirname, '../..');
/** In a folder of the repository that git ignores, so that Node finds the frameworks. */
const TEMPORARY = path.resolve(PACKAGE, '../../tmp');

export interface Project {
  readonly directory: string;
  write(file: string, text: string): string;
  /** Compiles the project. Throws the compiler's output. */
  typecheck(): void;
  remove(): void;
}

export function createProject(): Project {
  mkdirSync(TEMPORARY, { recursive: true });
  const directory = mkdtempSync(path.join(TEMPORARY, 'verify-'));
  const installed = path.join(directory, 'node_modules/@posthorn/verify');
  execFileSync(process.execPath, [path.join(PACKAGE, 'build.ts'), path.join(installed, 'dist')]);
  for (const file of ['package.json', 'README.md', 'LICENSE'])
    cpSync(path.join(PACKAGE, file), path.join(installed, file));
  const project: Project = {
    directory,
    write(file, text) {
      const full = path.join(directory, file);
      mkdirSync(path.dirname(full), { recursive: true });
      writeFileSync(full, text);
      return full;
    },
    typecheck() {
      const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
      try {
        execFileSync(process.execPath, [path.join(path.dirname(typescript), 'bin/tsc'), '-p', directory], {
          encoding: 'utf8',
          stdio: 'pipe',
        });
      } catch (error) {
        throw new Error((error as { stdout: string }).stdout);
      }
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
  project.write('package.json', '{ "type": "module" }');
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2023',
    types: ['node'],
    skipLibCheck: true,
  };
  project.write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['**/*'] }));
  return project;
}

/** Returns the code blocks of the README that start with a file name, by that name. */
export function readReadmeFiles(): Map<string, string> {
  const readme = readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/```ts\n\/\/ (\S+\.ts)\n([\s\S]*?)```/g)];
  return new Map(blocks.map(([, file, code]) => [file!, code!]));
}

export interface RunningServer {
  readonly url: string;
  output(): string;
  stop(): Promise<void>;
}

/** Runs a file that listens on PORT, and waits until it answers. */
export async function runServer(file: string, env: Record<string, string>): Promise<RunningServer> {
  const port = await findFreePort();
  const child: ChildProcess = spawn(process.execPath, [file], {
    env: { PATH: process.env.PATH ?? '', PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout!.on('data', (text) => {
    output += text;
  });
  child.stderr!.on('data', (text) => {
    output += text;
  });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${file} exited:\n${output}`);
    const response = await fetch(url).catch(() => null);
    if (response !== null) {
      await response.body?.cancel();
      break;
    }
    await sleep(20);
  }
  return {
    url,
    output: () => output,
    async stop() {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Sends a request that a receiver recorded to another URL. */
export function forwardRequest(url: string, { body, headers: all }: RecordedRequest): Promise<Response> {
  const { host: _host, 'content-length': _length, connection: _connection, ...headers } = all;
  return fetch(url, { method: 'POST', headers, body: Uint8Array.from(body) });
}
