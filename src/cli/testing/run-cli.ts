/** Runs the real program in a child process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDirectory } from '../../../scripts/open-directory.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
/** Node's default directory for compiled code: it halves the time of a start. */
const COMPILE_CACHE = path.join(tmpdir(), 'node-compile-cache');
const STAND_INS = new URL('./use-stand-ins.ts', import.meta.url).href;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Cli {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';
  readonly #watchers = new Set<() => void>();

  constructor(args: readonly string[], env: Record<string, string>, cwd: string) {
    // Pass nothing but PATH of the test's own environment: a DATABASE_URL there must not reach the program.
    const { PATH = '' } = process.env;
    this.process = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      cwd,
    });
    for (const name of ['stdout', 'stderr'] as const) {
      this.process[name]!.setEncoding('utf8').on('data', (text: string) => {
        this[name] += text;
        for (const watcher of this.#watchers) watcher();
      });
    }
    this.ended = new Promise((resolve) => {
      this.process.once('close', (code, signal) => {
        resolve({ code, signal });
        for (const watcher of this.#watchers) watcher();
      });
    });
  }

  get pid(): number {
    return this.process.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Resolves when the output matches. Rejects if the program ends before that. */
  printed(pattern: RegExp, where: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const found = pattern.exec(this[where]);
        const isOver = this.process.exitCode !== null || this.process.signalCode !== null;
        if (found === null && !isOver) return;
        this.#watchers.delete(check);
        if (found !== null) resolve(found);
        else reject(new Error(`Ended without printing ${pattern}.\n${this.stdout}\n${this.stderr}`));
      };
      this.#watchers.add(check);
      check();
    });
  }

  logged(): Record<string, unknown>[] {
    const lines = this.stderr.split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}

/** A directory, a free port and stand-ins for one test. `clean` kills the programs that still run. */
export class CliBench {
  readonly directory: string;
  readonly port: number;
  readonly #started: Cli[] = [];

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
  }

  static async make(): Promise<CliBench> {
    return new CliBench(await openDirectory('posthorn-cli-'), await freePort());
  }

  get dataDir(): string {
    return path.join(this.directory, 'data');
  }

  start(args: readonly string[], env: Record<string, string> = {}): Cli {
    const all = {
      PORT: String(this.port),
      POSTHORN_DATA_DIR: this.dataDir,
      TEST_NOTES: this.#notesFile,
      NODE_OPTIONS: `--import=${STAND_INS}`,
      ...env,
    };
    const cli = new Cli(args, all, this.directory);
    this.#started.push(cli);
    return cli;
  }

  /** For commands that end by themselves. */
  async run(args: readonly string[], env: Record<string, string> = {}): Promise<Cli & Ended> {
    const cli = this.start(args, env);
    return Object.assign(cli, await cli.ended);
  }

  async notes(): Promise<string[]> {
    const text = await readFile(this.#notesFile, 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean);
  }

  get #notesFile(): string {
    return path.join(this.directory, 'notes');
  }

  async clean(): Promise<void> {
    for (const cli of this.#started) cli.kill('SIGKILL');
    await Promise.all(this.#started.map((cli) => cli.ended));
    await rm(this.directory, { recursive: true, force: true });
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
