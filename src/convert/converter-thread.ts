/**
 * One converter thread, as the process sees it.
 *
 *   open ─▶ loading ─▶ idle ⇄ running ─▶ closed
 *              │                 │ over the time or memory limit, process.exit, a crash: closed, the conversion is lost
 *              ▼ refused, or over the time limit of loading: closed, `open` throws
 *
 * A thread that used much memory, or in which an earlier conversion left a failing timer or promise, is `isWorn`: its owner
 * replaces it between two conversions.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Clock } from '../domain/clock.ts';
import type {
  ConversionOrder,
  DeclaredConverter,
  LoadedModule,
  ThreadMessage,
  ThreadSetup,
} from './thread-protocol.ts';

export interface ThreadOptions {
  readonly clock: Clock;
  readonly configUrl: string;
  /** Of an earlier thread. Empty: read them from disk. */
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

export type ThreadAnswer =
  | { readonly kind: 'converted'; readonly data: Buffer }
  | { readonly kind: 'failed'; readonly message: string }
  /** The thread is closed. `isOwnFault`: this conversion caused it, and not what an earlier one left behind. */
  | {
      readonly kind: 'lost';
      readonly why: 'timeout' | 'memory' | 'exited' | 'closed';
      readonly isOwnFault: boolean;
    };

type Done = (answer: ThreadAnswer) => void;

/** The configuration may import packages. */
const LOAD_TIMEOUT_MS = 20_000;
/**
 * How often the memory of a long conversion is measured. The limit is not left to V8: that does not cover buffers, and a
 * single allocation beyond it (one long string) ends the whole process instead of the thread.
 */
const MEASURE_EVERY_MS = 20;
/** More than the longest string and its copy. */
const HEADROOM_MIB = 1536;
/** A thread that holds this share of its memory between two conversions is replaced. */
const WORN_SHARE = 0.75;
const MIB = 1024 * 1024;
const OUT_OF_MEMORY = 'ERR_WORKER_OUT_OF_MEMORY';

/** Sources in a checkout, compiled code in an installed package. */
export const THREAD_MAIN = new URL(
  import.meta.url.endsWith('.ts') ? './thread-main.ts' : './thread-main.js',
  import.meta.url,
);

export class ConverterThread {
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #port: MessageChannel['port1'];
  readonly #running = new Int32Array(new SharedArrayBuffer(4));
  #loaded: PromiseWithResolvers<LoadedConverters> | null = Promise.withResolvers();
  #done: Done | null = null;
  #stopTimers: () => void = () => {};
  #conversions = 0;
  #isClosed = false;
  isWorn = false;

  /** Throws an error that says what is wrong with the configuration. */
  static async open(
    options: ThreadOptions,
  ): Promise<{ readonly thread: ConverterThread; readonly loaded: LoadedConverters }> {
    const thread = new ConverterThread(options);
    const cancel = options.clock.after(LOAD_TIMEOUT_MS, () =>
      thread.#end('timeout', new Error(`it was not loaded within ${LOAD_TIMEOUT_MS / 1000} s`)),
    );
    try {
      const loaded = await thread.#loaded!.promise;
      thread.#worker.unref();
      thread.#port.unref();
      return { thread, loaded };
    } catch (error) {
      await thread.close();
      throw error;
    } finally {
      cancel();
    }
  }

  private constructor(options: ThreadOptions) {
    this.#options = options;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const setup: ThreadSetup = {
      port: port2,
      running: this.#running,
      configUrl: options.configUrl,
      modules: options.modules,
      maxResultBytes: options.maxResultBytes,
    };
    this.#worker = new Worker(THREAD_MAIN, {
      name: 'posthorn-converters',
      workerData: setup,
      transferList: [port2],
      // Converters need none of the process's secrets, and its output is Posthorn's log.
      env: { NODE_ENV: process.env.NODE_ENV ?? 'production', TZ: process.env.TZ ?? 'UTC' },
      argv: [],
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: {
        maxOldGenerationSizeMb: Math.floor(options.memoryBytes / MIB) + HEADROOM_MIB,
        maxYoungGenerationSizeMb: 16,
        stackSizeMb: 4,
      },
    });
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    port1.on('message', (message: ThreadMessage) => this.#onMessage(message));
    this.#worker.on('error', (error: NodeJS.ErrnoException) =>
      this.#end(error.code === OUT_OF_MEMORY ? 'memory' : 'exited', error),
    );
    this.#worker.on('exit', () => this.#end('exited', new Error('it ended the thread')));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Runs a conversion. The thread must be idle. Calls `done` exactly once. */
  run(order: Omit<ConversionOrder, 'id'>, done: Done): void {
    if (this.#isClosed) return done({ kind: 'lost', why: 'closed', isOwnFault: false });
    this.#done = done;
    this.#conversions += 1;
    const { clock, timeoutMs } = this.#options;
    const cancelTimeout = clock.after(timeoutMs, () => this.#end('timeout'));
    let cancelMeasuring = clock.after(MEASURE_EVERY_MS, () => measure());
    this.#stopTimers = () => {
      cancelTimeout();
      cancelMeasuring();
    };
    const measure = (): void => {
      void this.#measure();
      cancelMeasuring = clock.after(MEASURE_EVERY_MS, measure);
    };
    this.#worker.ref();
    // A copy: posting a view would copy all the memory behind it.
    const data = new Uint8Array(order.data);
    this.#port.postMessage({ ...order, data, id: this.#conversions } satisfies ConversionOrder, [
      data.buffer,
    ]);
  }

  /** Ends the thread at once. A conversion that runs is lost. */
  async close(): Promise<void> {
    this.#end('closed');
    await this.#worker.terminate();
  }

  #onMessage(message: ThreadMessage): void {
    switch (message.kind) {
      case 'loaded':
        this.#loaded?.resolve(message);
        this.#loaded = null;
        return;
      case 'refused':
        this.#loaded?.reject(new Error(message.message));
        this.#loaded = null;
        return;
      case 'spoiled':
        this.isWorn = true;
        return;
      case 'converted':
      case 'failed':
        // A converter cannot answer for another one, unless it has found the port: then the numbers differ.
        if (this.#done === null || message.id !== this.#conversions) return;
        if (message.usedBytes > WORN_SHARE * this.#options.memoryBytes) this.isWorn = true;
        this.#finish(
          message.kind === 'failed'
            ? { kind: 'failed', message: message.message }
            : { kind: 'converted', data: bufferOf(message.data) },
        );
    }
  }

  async #measure(): Promise<void> {
    // Rejected if the thread has just ended.
    const heap = await this.#worker.getHeapStatistics().catch(() => null);
    if (heap === null || this.#done === null) return;
    if (heap.used_heap_size + heap.external_memory > this.#options.memoryBytes * 1.25) this.#end('memory');
  }

  #end(why: 'timeout' | 'memory' | 'exited' | 'closed', error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#loaded?.reject(error ?? new Error('it was stopped'));
    this.#loaded = null;
    // A conversion that was posted but never began was held up by what an earlier one left behind. One that ran out of
    // memory may have found little left.
    const hasBegun = Atomics.load(this.#running, 0) === this.#conversions;
    const isOwnFault = why !== 'closed' && (why === 'timeout' ? hasBegun : this.#conversions <= 1);
    void this.#worker.terminate();
    this.#port.close();
    if (this.#done !== null) this.#finish({ kind: 'lost', why, isOwnFault });
  }

  #finish(answer: ThreadAnswer): void {
    this.#stopTimers();
    if (!this.#isClosed) this.#worker.unref();
    const done = this.#done!;
    this.#done = null;
    done(answer);
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
