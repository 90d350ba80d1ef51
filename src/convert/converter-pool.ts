/**
 * Runs converters in a few processes.
 *
 *   convert ─▶ queued (tenants take turns) ─▶ running in a process ─▶ converted | failed
 *      │ full: busy        ▲                        │ the process was lost: it is replaced
 *      ▼                   └── once, in a fresh process ── not this conversion's fault
 *
 * A tenant uses at most all processes but one, so that a hanging converter never holds up all tenants. A converter that hung
 * or crashed several times in a row for a tenant is paused for that tenant: its conversions are `busy` for a while instead
 * of taking a process each. Other tenants do not wait, because their payloads may be harmless.
 */
import type { Clock } from '../domain/clock.ts';
import type { VersionStep } from '../domain/version-pins.ts';
import { ConverterProcess, type ProcessAnswer, type ProcessOptions } from './converter-process.ts';
import type { ConverterSet } from './converter-set.ts';
import { TenantTurns } from './tenant-turns.ts';

export interface ConverterPoolOptions extends Omit<ProcessOptions, 'configUrl' | 'modules'> {
  readonly clock: Clock;
  readonly processes: number;
  readonly maxQueued?: number;
  readonly maxQueuedPerTenant?: number;
  readonly pauseMs?: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface PoolRequest {
  readonly tenant: string;
  readonly type: string;
  readonly path: readonly VersionStep[];
  readonly data: Buffer;
}

export type PoolAnswer =
  | { readonly kind: 'converted'; readonly data: Buffer }
  | { readonly kind: 'failed'; readonly message: string }
  /** Not tried: too many wait, or the process stops. `pausedForMs`: the converter is paused. */
  | { readonly kind: 'busy'; readonly pausedForMs?: number };

interface Job {
  readonly tenant: string;
  readonly request: PoolRequest;
  readonly name: string;
  readonly done: (answer: PoolAnswer) => void;
  /** True: its process died of another conversion, so this one runs once more. */
  isRetry: boolean;
}

interface Slot {
  process: ConverterProcess | null;
  job: Job | null;
  conversions: number;
  isOpening: boolean;
}

const MAX_QUEUED = 1_000;
const MAX_QUEUED_PER_TENANT = 250;
/** A converter that loses a process this often in a row is paused. */
const LOSSES_UNTIL_PAUSE = 3;
const PAUSE_MS = 10_000;
/** How many lost converters are counted, over all tenants. The oldest are forgotten. */
const MAX_COUNTED_LOSSES = 1_000;
const REOPEN_AFTER_MS = 1_000;

const LOSSES = {
  timeout: (limits: ProcessOptions) => `did not return within ${limits.timeoutMs} ms`,
  memory: (limits: ProcessOptions) =>
    `used more than ${Math.round(limits.memoryBytes / 1024 / 1024)} MiB of memory`,
  exited: () => 'ended its process',
};

export class ConverterPool {
  readonly #options: ConverterPoolOptions;
  readonly #set: ConverterSet;
  readonly #queue: TenantTurns<Job>;
  readonly #slots: Slot[];
  /** Conversions that run a second time. Each waits for the process that its slot is starting. */
  readonly #retries: Job[] = [];
  /** By tenant and converter. */
  readonly #losses = new Map<string, { losses: number; until: number }>();
  #isClosed = false;

  /** `process` has loaded `set` and becomes the first of the pool. */
  constructor(options: ConverterPoolOptions, set: ConverterSet, process: ConverterProcess) {
    this.#options = options;
    this.#set = set;
    this.#queue = new TenantTurns({
      maxItems: options.maxQueued ?? MAX_QUEUED,
      maxItemsPerTenant: options.maxQueuedPerTenant ?? MAX_QUEUED_PER_TENANT,
    });
    this.#slots = Array.from({ length: options.processes }, (_, index) => ({
      process: index === 0 ? process : null,
      job: null,
      conversions: 0,
      isOpening: false,
    }));
  }

  get queued(): number {
    return this.#queue.size;
  }

  get running(): number {
    return this.#slots.filter(({ job }) => job !== null).length;
  }

  /** Calls `done` exactly once, possibly before it returns. */
  convert(request: PoolRequest, done: (answer: PoolAnswer) => void): void {
    const name = `${request.type} ${request.path.map(({ from, to }) => `${from}→${to}`).join(', ')}`;
    const pausedUntil = this.#losses.get(lossKey(request.tenant, name))?.until ?? 0;
    const pausedForMs = pausedUntil - this.#options.clock.monotonic();
    if (pausedUntil > 0 && pausedForMs > 0) return done({ kind: 'busy', pausedForMs });
    const job = { tenant: request.tenant, request, name, done, isRetry: false };
    if (this.#isClosed || !this.#queue.add(job)) return done({ kind: 'busy' });
    this.#startJobs();
  }

  /** Ends all processes. Waiting conversions are `busy`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const waiting = [
      ...this.#queue.clear(),
      ...this.#retries.splice(0),
      ...this.#slots.flatMap(({ job }) => job ?? []),
    ];
    for (const slot of this.#slots) slot.job = null;
    for (const { done } of waiting) done({ kind: 'busy' });
    await Promise.all(this.#slots.map(({ process }) => process?.close()));
  }

  #startJobs(): void {
    for (const slot of this.#slots) {
      if (slot.job !== null || slot.isOpening) continue;
      if (slot.process === null) {
        // One process is enough while it is idle most of the time.
        if (this.#queue.size + this.#retries.length > 0) void this.#openProcess(slot);
        continue;
      }
      const retry = slot.conversions === 0 ? this.#retries.shift() : undefined;
      const job = retry ?? this.#queue.take((tenant) => this.#mayRun(tenant));
      if (job !== null) this.#run(slot, slot.process, job);
    }
  }

  #mayRun(tenant: string): boolean {
    const busy = this.#slots.filter(({ job }) => job?.tenant === tenant).length;
    return busy < Math.max(1, this.#slots.length - 1);
  }

  #run(slot: Slot, process: ConverterProcess, job: Job): void {
    slot.job = job;
    slot.conversions += 1;
    const { type, path, data } = job.request;
    process.run({ type, keys: this.#set.keysOf(type, path), data }, (answer) => {
      if (slot.job !== job) return;
      slot.job = null;
      if (process.needsReplacement || process.isClosed) this.#replaceProcess(slot);
      this.#onAnswer(job, answer);
      this.#startJobs();
    });
  }

  #onAnswer(job: Job, answer: ProcessAnswer): void {
    if (answer.kind !== 'lost') {
      this.#losses.delete(lossKey(job.tenant, job.name));
      return job.done(
        answer.kind === 'failed'
          ? { kind: 'failed', message: `The converter of ${job.request.type} failed. ${answer.message}` }
          : answer,
      );
    }
    if (answer.why === 'closed' && this.#isClosed) return job.done({ kind: 'busy' });
    if (!answer.isOwnFault && !job.isRetry) {
      job.isRetry = true;
      this.#retries.push(job);
      return;
    }
    this.#countLoss(lossKey(job.tenant, job.name));
    const what = LOSSES[answer.why === 'closed' ? 'exited' : answer.why](this.#limits);
    const message = `The converter of ${job.name} ${what}.`;
    job.done({ kind: 'failed', message });
  }

  #countLoss(key: string): void {
    const { clock, pauseMs = PAUSE_MS } = this.#options;
    const losses = (this.#losses.get(key)?.losses ?? 0) + 1;
    // After the pause one conversion runs. If it loses its process too, the converter is paused again.
    const until = losses >= LOSSES_UNTIL_PAUSE ? clock.monotonic() + pauseMs : 0;
    this.#losses.delete(key);
    this.#losses.set(key, { losses, until });
    if (this.#losses.size > MAX_COUNTED_LOSSES) this.#losses.delete(this.#losses.keys().next().value!);
  }

  get #limits(): ProcessOptions {
    return { ...this.#options, configUrl: this.#set.url, modules: this.#set.modules };
  }

  #replaceProcess(slot: Slot): void {
    const old = slot.process;
    slot.process = null;
    if (old !== null && !old.isClosed)
      void old.close().catch((error) => this.#options.onProblem('end a converter process', error));
    void this.#openProcess(slot);
  }

  async #openProcess(slot: Slot): Promise<void> {
    if (slot.isOpening || this.#isClosed) return;
    slot.isOpening = true;
    const { clock, onProblem } = this.#options;
    try {
      const { process } = await ConverterProcess.open(this.#limits);
      if (this.#isClosed) return await process.close();
      slot.process = process;
      slot.conversions = 0;
      slot.isOpening = false;
      this.#startJobs();
    } catch (error) {
      onProblem('start a converter process', error);
      clock.after(REOPEN_AFTER_MS, () => {
        slot.isOpening = false;
        this.#startJobs();
      });
    }
  }
}

const lossKey = (tenant: string, name: string): string => `${tenant}\n${name}`;
