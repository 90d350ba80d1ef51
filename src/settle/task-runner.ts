/**
 * Runs tasks over many deliveries (bulk replay, bulk discard) in the background, one chunk at a time. The store records
 * the progress in the same commit as the work, so a killed runner loses nothing: another one continues after the last
 * chunk.
 *
 *   queued ──claimed──▶ running ──▶ done
 *      │                 │  ▲ │
 *      │                 │  └─┘ the runner is silent, or its turn is over: another runner claims the task
 *      └──▶ cancelled ◀──┤
 *                        └──▶ failed (the store rejects the same chunk again and again, a single delivery takes too long,
 *                             or another transaction keeps a row locked)
 *
 * A chunk that runs into the store's time limit is halved, because fewer deliveries take less time. A chunk that waits for
 * a locked row is halved too, so that the deliveries before that row are processed, and other tasks get their turn
 * immediately.
 */
import { type Clock, latestNowOf } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { isStoreOutage, storeFailureOf } from '../ports/store-error.ts';
import type { ChunkResult, ClaimedTask, TaskStore } from '../ports/task-store.ts';

export interface TaskRunnerOptions {
  readonly tasks: TaskStore;
  readonly clock: Clock;
  readonly runner: Uuid;
  /** This runner takes over tasks whose runner was silent for this long. */
  readonly silentMs: number;
  /** How often to look for tasks whose notification was lost, or whose runner died. */
  readonly pollMs: number;
  /** Called for an endpoint that has something to send now, or whose lane is no longer blocked. */
  readonly wake: (endpointId: Uuid) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

const DELIVERIES_PER_CHUNK = 500;
/** A chunk that was halved doubles again after this many chunks that were quick enough. */
const CHUNKS_BEFORE_GROWTH = 10;
/** After this many chunks or this long another task gets its turn, so that a task with a million deliveries does not delay the others. */
const CHUNKS_PER_TURN = 20;
const TURN_MS = 1_000;
/** After a failure, or if a task has nothing to do for now. */
const PAUSE_MS = 200;
/** A task fails if the store rejects a chunk this often in a row. */
const MAX_REJECTIONS = 5;
/** A task fails if a locked row has stopped it for this long, and at least this often in a row. */
const MAX_BLOCKED_MS = 300_000;
const MIN_BLOCKED_TRIES = 10;
/** How many blocked tasks are tracked. Tasks that ended in other processes leave entries behind. */
const MAX_BLOCKED_TASKS = 1_000;

export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  /** Sizes of halved chunks, by task. They survive the turn, so that the next one does not time out again. */
  readonly #sizes = new Map<Uuid, { size: number; done: number }>();
  /** Tasks that a locked row stops: when that began on the monotonic clock, and how often they tried. */
  readonly #blocked = new Map<Uuid, { readonly since: number; tries: number }>();
  #cancelPoll: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #runAgain = false;
  #isStopped = false;

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
  }

  start(): void {
    this.runSoon();
  }

  /** Call this when a task was created. */
  runSoon(): void {
    if (this.#isStopped) return;
    this.#runAgain = true;
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    this.#running ??= this.#runAll().finally(() => {
      this.#running = null;
      if (this.#runAgain) this.runSoon();
      else if (!this.#isStopped)
        this.#cancelPoll = this.#options.clock.after(this.#options.pollMs, () => this.runSoon());
    });
  }

  /** Resolves when the current chunk is done. Other runners continue its task. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#runAgain = false;
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    await this.#running;
  }

  async #runAll(): Promise<void> {
    this.#runAgain = false;
    try {
      while (!this.#isStopped && (await this.runOnce()));
    } catch (error) {
      this.#options.onProblem('work on tasks', error);
    }
  }

  /** Gives one task a turn. Returns false if there is no task to work on. */
  async runOnce(): Promise<boolean> {
    const { tasks, clock, runner, silentMs } = this.#options;
    const task = await tasks.claim(runner, silentMs);
    if (task === null) {
      this.#sizes.clear();
      return false;
    }
    let rejections = 0;
    const startedAt = clock.monotonic();
    const isMyTurn = () => !this.#isStopped && clock.monotonic() - startedAt < TURN_MS;
    for (let chunks = 0; chunks === 0 || (chunks < CHUNKS_PER_TURN && isMyTurn()); chunks += 1) {
      try {
        const { isRunning, isWaiting } = await this.#runChunk(task);
        if (!isRunning) return true;
        if (isWaiting) {
          await this.#pause();
          break;
        }
        rejections = 0;
      } catch (error) {
        this.#options.onProblem('work on a task', error);
        if (storeFailureOf(error) === 'timeout') {
          // Try again immediately: the heartbeat is old by now, and another runner would begin with a whole chunk.
          if (this.#halveChunk(task)) continue;
          await this.#fail(task, 'A single delivery takes the database longer than a statement may take.');
          return true;
        }
        if (storeFailureOf(error) === 'conflict') {
          await this.#yieldBlocked(task);
          return true;
        }
        if (!isStoreOutage(error)) rejections += 1;
        if (rejections >= MAX_REJECTIONS) {
          await this.#fail(task, 'The database rejects this task. The reason is in the log.');
          return true;
        }
        await this.#pause();
      }
    }
    await tasks.release(task);
    return true;
  }

  async #runChunk(task: ClaimedTask): Promise<ChunkResult> {
    const halved = this.#sizes.get(task.id);
    const size = halved?.size ?? DELIVERIES_PER_CHUNK;
    const result = await this.#options.tasks.runChunk(task, size, latestNowOf(this.#options.clock));
    for (const endpointId of result.endpointIds) this.#options.wake(endpointId);
    this.#blocked.delete(task.id);
    if (!result.isRunning) this.#sizes.delete(task.id);
    else if (halved !== undefined) this.#growChunk(task, halved);
    return result;
  }

  /** Returns false if the chunk was a single delivery. */
  #halveChunk({ id }: ClaimedTask): boolean {
    const size = this.#sizes.get(id)?.size ?? DELIVERIES_PER_CHUNK;
    if (size === 1) return false;
    this.#sizes.set(id, { size: size >> 1, done: 0 });
    return true;
  }

  #growChunk({ id }: ClaimedTask, halved: { size: number; done: number }): void {
    halved.done += 1;
    if (halved.done < CHUNKS_BEFORE_GROWTH) return;
    if (halved.size * 2 > DELIVERIES_PER_CHUNK) this.#sizes.delete(id);
    else this.#sizes.set(id, { size: halved.size * 2, done: 0 });
  }

  /** Lets other tasks run. A task that was blocked for too long fails. */
  async #yieldBlocked(task: ClaimedTask): Promise<void> {
    const { tasks, clock } = this.#options;
    const blocked = this.#blocked.get(task.id) ?? { since: clock.monotonic(), tries: 0 };
    blocked.tries += 1;
    if (blocked.tries >= MIN_BLOCKED_TRIES && clock.monotonic() - blocked.since >= MAX_BLOCKED_MS)
      return this.#fail(task, 'Another transaction keeps a row of this task locked. End it, then try again.');
    if (this.#blocked.size >= MAX_BLOCKED_TASKS) this.#blocked.clear();
    this.#blocked.set(task.id, blocked);
    this.#halveChunk(task);
    await this.#pause();
    await tasks.release(task);
  }

  async #fail(task: ClaimedTask, reason: string): Promise<void> {
    this.#sizes.delete(task.id);
    this.#blocked.delete(task.id);
    await this.#options.tasks.fail(task, reason);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(PAUSE_MS, resolve));
  }
}
