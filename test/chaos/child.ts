/** A process of the run. After a kill, another process takes its place. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from './until.ts';

const KEEP_COMPILED = new URL('./keep-compiled.ts', import.meta.url).href;

export interface Exit {
  readonly process: string;
  readonly at: number;
  readonly how: string;
  readonly logTail: string;
}

export interface ChildOptions {
  readonly name: string;
  readonly logFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** Called if the process ends unexpectedly after it was ready. */
  readonly onExit: (exit: Exit) => void;
}

const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export abstract class Child {
  readonly name: string;
  readonly logFile: string;
  /** The ids of all processes that had this place. */
  readonly pids: number[] = [];
  readonly #env: Readonly<Record<string, string>>;
  readonly #onExit: (exit: Exit) => void;
  #child: ChildProcess | null = null;
  #exited: Promise<void> = Promise.resolve();
  #expected = false;
  #wasReady = false;
  #firstOutput = '';

  constructor({ name, logFile, env, onExit }: ChildOptions) {
    this.name = name;
    this.logFile = logFile;
    this.#env = env;
    this.#onExit = onExit;
  }

  abstract start(): Promise<void>;
  protected abstract isReady(): boolean | Promise<boolean>;

  /** The first thing that this process printed. */
  protected get firstOutput(): string {
    return this.#firstOutput;
  }

  get running(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  protected spawn(args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
    const child = spawn(process.execPath, ['--import', KEEP_COMPILED, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(dirname(this.logFile), 'compiled'),
        ...this.#env,
        ...env,
      },
    });
    this.#firstOutput = '';
    child.stdout.once('data', (text: Buffer) => {
      this.#firstOutput = text.toString();
    });
    const log = createWriteStream(this.logFile, { flags: 'a' });
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
    this.pids.push(child.pid!);
    this.#child = child;
    this.#expected = false;
    this.#wasReady = false;
    alive.add(child);
    this.#exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        alive.delete(child);
        const how = signal ?? `exit code ${code}`;
        const expected = this.#expected;
        log.end(() => {
          resolve();
          if (!expected && this.#wasReady) void this.#report(how);
        });
      });
    });
  }

  async #report(how: string): Promise<void> {
    this.#onExit({ process: this.name, at: Date.now(), how, logTail: await this.#readLogTail() });
  }

  async #readLogTail(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return text.trimEnd().split('\n').slice(-6).join('\n');
  }

  async ready(timeoutMs = 20_000): Promise<void> {
    const check = async (): Promise<boolean> => {
      if (!this.running) throw new Error(`${this.name} has ended instead of getting ready`);
      return this.isReady();
    };
    try {
      await until(`${this.name} is ready`, check, timeoutMs);
    } catch (error) {
      throw new Error(`${(error as Error).message}:\n${await this.#readLogTail()}`, { cause: error });
    }
    this.#wasReady = true;
  }

  /** Starts the process as a supervisor would: again and again while it fails because the database is down. */
  async bringBack(): Promise<void> {
    const deadline = Date.now() + 60_000;
    for (;;) {
      await this.start();
      try {
        return await this.ready(40_000);
      } catch (error) {
        if (this.running || Date.now() > deadline) throw error;
        await delay(200);
      }
    }
  }

  async kill(): Promise<void> {
    this.#expected = true;
    this.signal('SIGKILL');
    await this.#exited;
  }

  pause(): void {
    this.signal('SIGSTOP');
  }

  resume(): void {
    this.signal('SIGCONT');
  }

  /** Sends SIGTERM. Returns how the process ended. */
  async stop(): Promise<string> {
    this.#expected = true;
    this.signal('SIGTERM');
    await this.#exited;
    return this.#child?.signalCode ?? `exit code ${this.#child?.exitCode}`;
  }

  protected signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }
}
