/**
 * One converter process, as the server sees it. A process and not a thread: V8 ends the whole process when one call allocates
 * too much, and no limit of a thread prevents that.
 *
 *   open ─▶ loading ─▶ idle ⇄ running ─▶ closed
 *              │                 │ over the time or memory limit, process.exit, a crash: closed, the conversion is lost
 *              ▼ refused, or over the time limit of loading: closed, `open` throws
 *
 * A process that used much memory, or in which an earlier conversion left a failing timer or promise, has `needsReplacement` set: its owner
 * replaces it between two conversions.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Clock } from '../domain/clock.ts';
import { converterProgram } from './converter-program.ts';
import type {
  ConversionOrder,
  DeclaredConverter,
  LoadedModule,
  ProcessMessage,
  ProcessSetup,
} from './process-protocol.ts';

export interface ProcessOptions {
  readonly clock: Clock;
  readonly configUrl: string;
  /** The modules that an earlier process loaded. Empty: read them from disk. */
  readonly modules: readonly LoadedModule[];
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  readonly maxResultBytes: number;
}

export interface LoadedConverters {
  readonly declared: readonly DeclaredConverter[];
  readonly modules: readonly LoadedModule[];
  readonly hash: string;
}

export type ProcessAnswer =
  | { readonly kind: 'converted'; readonly data: Buffer }
  | { readonly kind: 'failed'; readonly message: string }
  /** The process has ended. `isOwnFault`: this conversion caused it, and not what an earlier one left behind. */
  | {
      readonly kind: 'lost';
      readonly why: 'timeout' | 'memory' | 'exited' | 'closed';
      readonly isOwnFault: boolean;
    };

type Done = (answer: ProcessAnswer) => void;

/** The configuration may import packages. */
const LOAD_TIMEOUT_MS = 20_000;
/** Memory in addition to the limit: V8's garbage, and the thread that measures. */
const HEADROOM_SHARE = 0.25;
const HEADROOM_BYTES = 32 * 1024 * 1024;
/** A process that holds this share of its memory between two conversions is replaced. */
const REPLACE_SHARE = 0.75;
const MIB = 1024 * 1024;
/** How V8 ends a process that allocates too much, and how the process or the system ends it. */
const OUT_OF_MEMORY: ReadonlySet<string | null> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL']);

/** As much as a thread of Node has. The system gives 8 MiB. */
const STACK_KIB = 3_900;
const SEMI_SPACE_MIB = 8;

export class ConverterProcess {
  readonly #options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #ended = Promise.withResolvers<void>();
  #loaded: PromiseWithResolvers<LoadedConverters> | null = Promise.withResolvers();
  #done: Done | null = null;
  #stopTimer: () => void = () => {};
  #conversions = 0;
  /** The number of the latest conversion that the process has begun. */
  #begun = 0;
  #isClosed = false;
  needsReplacement = false;

  /** Throws an error that says what is wrong with the configuration. */
  static async open(
    options: ProcessOptions,
  ): Promise<{ readonly process: ConverterProcess; readonly loaded: LoadedConverters }> {
    const opened = new ConverterProcess(options);
    const cancel = options.clock.after(LOAD_TIMEOUT_MS, () =>
      opened.#end('timeout', new Error(`it was not loaded within ${LOAD_TIMEOUT_MS / 1000} s`)),
    );
    try {
      const loaded = await opened.#loaded!.promise;
      opened.#unref();
      return { process: opened, loaded };
    } catch (error) {
      await opened.close();
      throw error;
    } finally {
      cancel();
    }
  }

  private constructor(options: ProcessOptions) {
    this.#options = options;
    const maxBytes = options.memoryBytes * (1 + HEADROOM_SHARE);
    const { module, args, execArgv, env } = converterProgram({
      heapMib: Math.ceil(maxBytes / MIB),
      semiSpaceMib: SEMI_SPACE_MIB,
      stackKib: STACK_KIB,
    });
    this.#child = fork(module, args, {
      serialization: 'advanced',
      // Converters need none of the server's secrets, and its output is Posthorn's log.
      env: { NODE_ENV: process.env.NODE_ENV ?? 'production', TZ: process.env.TZ ?? 'UTC', ...env },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [...execArgv],
    });
    this.#child.on('message', (message) => this.#onMessage(message as ProcessMessage));
    this.#child.on('error', (error) => {
      this.#end('exited', error);
      // The process was never started, so it emits no `exit`.
      if (this.#child.pid === undefined) this.#ended.resolve();
    });
    this.#child.on('exit', (_code, signal) => {
      const end = () =>
        this.#end(OUT_OF_MEMORY.has(signal) ? 'memory' : 'exited', new Error('it ended its process'));
      // Its last answer may still be in the pipe.
      if (this.#child.connected) this.#child.once('disconnect', end);
      else end();
      this.#ended.resolve();
    });
    const { configUrl, modules, maxResultBytes } = options;
    this.#post({ configUrl, modules, maxResultBytes, maxGrowthBytes: maxBytes + HEADROOM_BYTES });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Runs a conversion. The process must be idle. Calls `done` exactly once. */
  run(order: Omit<ConversionOrder, 'id'>, done: Done): void {
    if (this.#isClosed) return done({ kind: 'lost', why: 'closed', isOwnFault: false });
    this.#done = done;
    this.#conversions += 1;
    const { clock, timeoutMs } = this.#options;
    this.#stopTimer = clock.after(timeoutMs, () => this.#end('timeout'));
    this.#child.ref();
    this.#child.channel?.ref();
    this.#post({ ...order, id: this.#conversions });
  }

  /** Ends the process at once. A conversion that runs is lost. */
  async close(): Promise<void> {
    this.#end('closed');
    // Keep the server running until the process has ended: a server without other work would exit before its caller continues.
    this.#child.ref();
    await this.#ended.promise;
    this.#unref();
  }

  /** An error means that the process has ended, which `exit` reports. */
  #post(message: ProcessSetup | ConversionOrder): void {
    this.#child.send(message, () => {});
  }

  #unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #onMessage(message: ProcessMessage): void {
    switch (message.kind) {
      case 'loaded':
        this.#loaded?.resolve(message);
        this.#loaded = null;
        return;
      case 'refused':
        this.#loaded?.reject(new Error(message.message));
        this.#loaded = null;
        return;
      case 'begun':
        this.#begun = message.id;
        return;
      case 'spoiled':
        this.needsReplacement = true;
        return;
      case 'converted':
      case 'failed':
        // A converter that has found the channel might answer for a conversion of another one. Its number differs then.
        if (this.#done === null || message.id !== this.#conversions) return;
        if (message.usedBytes > REPLACE_SHARE * this.#options.memoryBytes) this.needsReplacement = true;
        this.#finish(
          message.kind === 'failed'
            ? { kind: 'failed', message: message.message }
            : { kind: 'converted', data: bufferOf(message.data) },
        );
    }
  }

  #end(why: 'timeout' | 'memory' | 'exited' | 'closed', error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#loaded?.reject(error ?? new Error('it was stopped'));
    this.#loaded = null;
    // A conversion that was posted and never began waited for something that an earlier one left behind. A conversion that ran out of
    // memory may have found little left.
    const hasBegun = this.#begun === this.#conversions;
    const isOwnFault = why !== 'closed' && (why === 'timeout' ? hasBegun : this.#conversions <= 1);
    this.#child.kill('SIGKILL');
    if (this.#done !== null) this.#finish({ kind: 'lost', why, isOwnFault });
  }

  #finish(answer: ProcessAnswer): void {
    this.#stopTimer();
    this.#unref();
    const done = this.#done!;
    this.#done = null;
    done(answer);
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
