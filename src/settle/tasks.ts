/**
 * Works on tasks over many deliveries (bulk replay, bulk discard) in the background, a chunk at a time. All progress
 * is in the database, in the same statement as the work: this process may be killed at any point, and another one
 * goes on behind the last chunk.
 *
 *   queued ──claimed──▶ running ──▶ done
 *      │                 │  ▲ │
 *      │                 │  └─┘ runner silent, or its turn over: claimed by another
 *      └──▶ cancelled ◀──┤
 *                        └──▶ failed (the database refuses the chunk again and again)
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import { failureOf } from '../postgres/failures.ts';
import { type ClaimedTask, claimTask, failTask, releaseTask, workOnTask } from '../postgres/queries/tasks.ts';

export interface TaskRunnerOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly runner: Uuid;
  /** A task whose runner was not heard of for so long is taken over. */
  readonly silentMs: number;
  /** How often to look for tasks whose call was lost, or whose runner died. */
  readonly pollMs: number;
  /** Something of this endpoint became due, or what blocked it is gone. */
  readonly wake: (endpointId: Uuid) => void;
  readonly problem: (what: string, error: unknown) => void;
}

const CHUNK = 500;
/** Then another task may have its turn: one with a million deliveries does not hold up the others. */
const CHUNKS_PER_TURN = 20;
const PAUSE_AFTER_FAILURE_MS = 200;
const REFUSALS_TO_FAIL = 5;

export class TaskRunner {
  readonly #options: TaskRunnerOptions;
  #cancel: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(options: TaskRunnerOptions) {
    this.#options = options;
  }

  start(): void {
    this.hurry();
  }

  /** There is a new task. */
  hurry(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#cancel?.();
    this.#cancel = null;
    this.#running ??= this.#runAll().finally(() => {
      this.#running = null;
      if (this.#again) this.hurry();
      else if (!this.#stopped)
        this.#cancel = this.#options.clock.after(this.#options.pollMs, () => this.hurry());
    });
  }

  /** What is under way is finished to the end of its chunk; the rest is for others. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#again = false;
    this.#cancel?.();
    this.#cancel = null;
    await this.#running;
  }

  async #runAll(): Promise<void> {
    this.#again = false;
    try {
      while (!this.#stopped && (await this.runOnce()));
    } catch (error) {
      this.#options.problem('work on tasks', error);
    }
  }

  /** One turn of one task. False: there is none to work on. */
  async runOnce(): Promise<boolean> {
    const { pool, runner, silentMs } = this.#options;
    const task = await claimTask(pool, runner, silentMs);
    if (task === null) return false;
    let refusals = 0;
    for (let chunks = 0; chunks < CHUNKS_PER_TURN && !this.#stopped; chunks += 1) {
      try {
        if (!(await this.#workOnce(task))) return true;
        refusals = 0;
      } catch (error) {
        this.#options.problem('work on a task', error);
        const failure = failureOf(error);
        if (failure === 'bad_row' || failure === 'no_partition' || failure === 'other') refusals += 1;
        if (refusals >= REFUSALS_TO_FAIL) {
          await failTask(pool, task.id, runner, 'The database refuses it. The log has the reason.');
          return true;
        }
        await this.#pause();
      }
    }
    await releaseTask(pool, task.id, runner);
    return true;
  }

  /** False: the task has ended, or is somebody else's by now. */
  async #workOnce(task: ClaimedTask): Promise<boolean> {
    const { state, endpoints } = await workOnTask(this.#options.pool, task, CHUNK);
    for (const endpointId of endpoints) this.#options.wake(endpointId);
    return state === 'running';
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(PAUSE_AFTER_FAILURE_MS, resolve));
  }
}
