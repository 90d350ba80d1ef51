/**
 * `serve --processes N`: a parent that does nothing but start N children and keep them running.
 *
 * Children that answer the API share the port through node:cluster, whose parent accepts connections and distributes
 * them in turn. Measured with four processes and 8 keep-alive connections, as a few producers make them: 2, 2, 2, 2 in
 * turn; with SO_REUSEPORT the kernel's hash gave 0, 3, 2, 3, one process idle. The parent works per connection, not per
 * request. And a second Posthorn on the same port fails with EADDRINUSE; with SO_REUSEPORT it would share the port.
 */
import cluster, { type Worker } from 'node:cluster';
import { isSea } from 'node:sea';
import type { Config } from '../config/index.ts';
import type { Log } from '../telemetry/log.ts';
import { NodeMetrics } from './node-metrics.ts';
import { backoffAfter, restartDelayMs } from './restart-pace.ts';
import type { Running } from './run-until-stopped.ts';
import { makeSiblingsDirectory, removeSiblingsDirectory } from './siblings-directory.ts';
import { STOP_MESSAGE, SUPERVISOR_VARIABLE } from './stop-requests.ts';

/** The program that the children run: this one, with the same arguments. */
export interface Program {
  readonly exec: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface SupervisorOptions extends Program {
  /** One role per child. */
  readonly roles: readonly Config['role'][];
  readonly log: Log;
  /** Called when a child listens. It reports that it is ready only after this. */
  readonly onListening?: () => Promise<void>;
}

/** A place for one child, which is replaced when it ends. */
interface Slot {
  readonly number: number;
  readonly role: Config['role'];
  worker: Worker | null;
  /**
   * Resolves when the first child of this slot is ready. Rejects if a child fails for a reason that all children would
   * meet.
   */
  readonly firstReady: PromiseWithResolvers<string>;
  startedAt: number;
  backoffMs: number;
  restart: NodeJS.Timeout | null;
}

/**
 * Exit code of a child that failed because of its configuration (sysexits' EX_CONFIG). Every child would fail in the
 * same way, so during the start of the node it ends the node. In all other cases the child is restarted.
 */
export const CONFIGURATION_EXIT_CODE = 78;

export class ChildFailedToStart extends Error {
  override readonly name = 'ChildFailedToStart';
  readonly hint = 'Its error message is above.';

  constructor() {
    super('A child process could not start.');
  }
}

export class Supervisor implements Running {
  readonly name = 'child processes';
  readonly #options: SupervisorOptions;
  readonly #slots: Slot[];
  readonly #metrics: NodeMetrics;
  #siblingsDirectory: string | null = null;
  #forks = 0;
  #isUp = false;
  #isStopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#slots = options.roles.map((role, index) => ({
      number: index + 1,
      role,
      worker: null,
      firstReady: Promise.withResolvers<string>(),
      startedAt: Number.NEGATIVE_INFINITY,
      backoffMs: 0,
      restart: null,
    }));
    this.#metrics = new NodeMetrics(options.roles.length, () =>
      this.#slots.flatMap(({ number, worker }) => (worker === null ? [] : [{ process: number, worker }])),
    );
  }

  /** Resolves with the URL when all children are ready. Throws ChildFailedToStart if the configuration stops them. */
  async start(): Promise<string> {
    this.#siblingsDirectory = await makeSiblingsDirectory(this.#options.log);
    // Start one child first: an error that would stop all of them is then printed once.
    const [first, ...others] = this.#slots;
    const url = await this.#startFirst(first!);
    await Promise.all(others.map((slot) => this.#startFirst(slot)));
    this.#isUp = true;
    return url;
  }

  /** Stops the children that accept events first: the others can still deliver what those accept until then. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const accepting = this.#slots.filter(({ role }) => role === 'api');
    const others = this.#slots.filter(({ role }) => role !== 'api');
    for (const slots of [accepting, others]) await Promise.all(slots.map((slot) => this.#stopSlot(slot)));
    if (this.#siblingsDirectory !== null) removeSiblingsDirectory(this.#siblingsDirectory);
  }

  kill(): void {
    this.#isStopping = true;
    for (const { worker } of this.#slots) worker?.process.kill('SIGKILL');
    if (this.#siblingsDirectory !== null) removeSiblingsDirectory(this.#siblingsDirectory);
  }

  #startFirst(slot: Slot): Promise<string> {
    if (!this.#isStopping) this.#startChild(slot);
    return slot.firstReady.promise;
  }

  #startChild(slot: Slot): void {
    slot.restart = null;
    const worker = this.#fork(slot);
    worker.on('message', (message: unknown) => {
      if (isReadyMessage(message)) slot.firstReady.resolve(message.url);
      if (message === LISTENING) void this.#onListening(worker);
    });
    worker.once('exit', (exitCode) => {
      if (!this.#isUp && exitCode === CONFIGURATION_EXIT_CODE)
        slot.firstReady.reject(new ChildFailedToStart());
      else this.#onChildEnded(slot, worker);
    });
  }

  async #onListening(worker: Worker): Promise<void> {
    await this.#options.onListening?.();
    if (worker.isConnected()) worker.send(HAS_PORT);
  }

  #fork(slot: Slot): Worker {
    this.#forks += 1;
    const worker = forkChild(this.#options, {
      role: slot.role,
      ...(this.#siblingsDirectory !== null && { siblings: `${this.#forks}:${this.#siblingsDirectory}` }),
    });
    slot.worker = worker;
    slot.startedAt = performance.now();
    this.#metrics.listen(worker);
    // The child ended while a message was sent to it. Its exit is handled below.
    worker.on('error', (error) =>
      this.#options.log.debug({ err: error, child: slot.number }, 'error on the channel to a child'),
    );
    worker.once('exit', () => {
      slot.worker = null;
    });
    return worker;
  }

  #onChildEnded(slot: Slot, worker: Worker): void {
    if (this.#isStopping) return;
    const now = performance.now();
    const ranMs = now - slot.startedAt;
    slot.backoffMs = backoffAfter(ranMs, slot.backoffMs);
    const delayMs = restartDelayMs(ranMs, slot.backoffMs);
    this.#options.log.error(
      {
        child: slot.number,
        childPid: worker.process.pid,
        exitCode: worker.process.exitCode,
        signal: worker.process.signalCode,
        ranMs: Math.round(ranMs),
        restartInMs: Math.round(delayMs),
      },
      'a child process ended, starting another',
    );
    slot.restart = setTimeout(() => this.#startChild(slot), delayMs);
  }

  #stopSlot(slot: Slot): Promise<void> {
    if (slot.restart !== null) clearTimeout(slot.restart);
    const { worker } = slot;
    if (worker === null) return Promise.resolve();
    return new Promise((resolve) => {
      worker.once('exit', () => resolve());
      if (worker.isConnected()) worker.send(STOP_MESSAGE);
    });
  }
}

/** The role of the child that answers probes during the start (waiting-child.ts). No node has it. */
export const WAITING_ROLE = 'waiting';
type ChildRole = Config['role'] | typeof WAITING_ROLE;

export function forkChild(
  { exec, args, env }: Program,
  { role, siblings }: { readonly role: ChildRole; readonly siblings?: string },
): Worker {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec, args: [...args], execArgv: childOptions(process.execArgv) });
  return cluster.fork({
    ...env,
    [ROLE_VARIABLE]: role,
    [SUPERVISOR_VARIABLE]: String(process.pid),
    ...(siblings !== undefined && { [SIBLINGS_VARIABLE]: siblings }),
  });
}

/**
 * Room for objects that live for one commit, twice Node's default: fewer collections, and fewer events that a collection
 * finds alive and copies. With batches of 100, an event takes 87 instead of 94 to 99 µs of processor time (docs/adr/0024-batches.md). A
 * busy process takes up to 50 MB more, by calculation.
 */
const SEMI_SPACE_OPTION = '--max-semi-space-size';

/** Options of Node for a child. Those that the operator has set stay. The single-file executable takes none: it would read them as flags. */
export const childOptions = (
  own: readonly string[],
  nodeOptions = process.env.NODE_OPTIONS ?? '',
): string[] =>
  isSea() || [...own, nodeOptions].some((option) => option.includes(SEMI_SPACE_OPTION))
    ? [...own]
    : [...own, `${SEMI_SPACE_OPTION}=32`];

/** Tells a child its role. Not a setting: POSTHORN_ROLE is the role of the whole node. */
const ROLE_VARIABLE = 'POSTHORN_CHILD_ROLE';

/** Undefined in a child of another program's cluster. */
export const roleOfChild = (): ChildRole | undefined => process.env[ROLE_VARIABLE] as ChildRole | undefined;

/** Tells a child its number and the directory of its siblings' sockets. Not a setting: it changes with every start. */
const SIBLINGS_VARIABLE = 'POSTHORN_SIBLINGS';

export function siblingsOfChild(): { directory: string; number: number } | undefined {
  const [, number, directory] = /^(\d+):(.+)$/.exec(process.env[SIBLINGS_VARIABLE] ?? '') ?? [];
  return directory === undefined ? undefined : { directory, number: Number(number) };
}

const READY = 'posthorn:ready';

interface ReadyMessage {
  readonly kind: typeof READY;
  readonly url: string;
}

function isReadyMessage(message: unknown): message is ReadyMessage {
  return typeof message === 'object' && message !== null && 'kind' in message && message.kind === READY;
}

/** Called by a child when it is ready. */
export function reportReady(url: string): void {
  // If the supervisor has ended, the channel is closed and the child is already stopping.
  if (process.connected) process.send?.({ kind: READY, url } satisfies ReadyMessage, undefined, {}, () => {});
}

const LISTENING = 'posthorn:listening';
const HAS_PORT = 'posthorn:has-port';

/** Called by a child when it listens. Resolves when it no longer shares the port with the child that answers probes. */
export function reportListening(): Promise<void> {
  return new Promise((resolve) => {
    const onMessage = (message: unknown): void => {
      if (message !== HAS_PORT) return;
      process.off('message', onMessage);
      resolve();
    };
    process.on('message', onMessage);
    // If the supervisor has ended, the channel is closed and the child is already stopping.
    if (process.connected) process.send?.(LISTENING, undefined, {}, () => {});
  });
}
