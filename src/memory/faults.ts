/**
 * Faults between a process and its store. Every call passes through a link, which takes time and may lose the request or
 * the answer.
 *
 *   request ──▶ effect in the store ──▶ answer
 *      │ lost: no effect      │ lost: the effect stays, the caller cannot know
 *      └────────▶ StoreError('outcome_unknown') ◀────┘
 */
import type { Clock } from '../domain/clock.ts';
import type { OwnershipSession, OwnershipStore } from '../ports/ownership-store.ts';
import { StoreError, type StoreFailure } from '../ports/store-error.ts';

/** A `StoreFailure` means that the store refuses the call: nothing is written. */
export type Fault = 'none' | 'lost_request' | 'lost_answer' | Exclude<StoreFailure, 'outcome_unknown'>;

export interface LinkOptions {
  /** The effect uses the clock of the store: it happens even if the calling process dies meanwhile. */
  readonly storeClock: Pick<Clock, 'after'>;
  /** The answer uses the clock of the calling process. */
  readonly processClock: Pick<Clock, 'after'>;
  readonly latencyMs: (operation: string, parameters: readonly unknown[]) => number;
  readonly fault: (operation: string) => Fault;
  /** A call that takes longer fails after this time with `timeout`, and has no effect. Default: never. */
  readonly statementTimeoutMs?: number;
  /** True: the call waits for a lock, and fails with `conflict` after this time. */
  readonly lockWait?: { readonly timeoutMs: number; isLocked(parameters: readonly unknown[]): boolean };
  /** Called with the name of every operation. */
  readonly onCall?: (operation: string) => void;
}

export class Link {
  readonly #options: LinkOptions;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Runs `task` in the calling process, which the store does not wait for. */
  runInProcess(task: () => void): void {
    this.#options.processClock.after(0, task);
  }

  async call<T>(
    operation: string,
    effect: () => Promise<T>,
    parameters: readonly unknown[] = [],
  ): Promise<T> {
    const { storeClock, processClock, latencyMs, fault, onCall, statementTimeoutMs, lockWait } =
      this.#options;
    onCall?.(operation);
    const tookMs = latencyMs(operation, parameters);
    const halfMs = tookMs / 2;
    const chosenFault = fault(operation);
    if (statementTimeoutMs !== undefined && tookMs > statementTimeoutMs) {
      await wait(processClock, statementTimeoutMs);
      return refuse('timeout', operation);
    }
    if (lockWait?.isLocked(parameters)) {
      await wait(processClock, lockWait.timeoutMs);
      return refuse('conflict', operation);
    }
    if (chosenFault === 'lost_request') {
      await wait(processClock, 2 * halfMs);
      throw connectionLost(operation);
    }
    await wait(storeClock, halfMs);
    const answer = await captureAnswer(
      chosenFault === 'none' || chosenFault === 'lost_answer' ? effect() : refuse(chosenFault, operation),
    );
    await wait(processClock, halfMs);
    if (chosenFault === 'lost_answer') throw connectionLost(operation);
    return answer();
  }
}

const wait = (clock: Pick<Clock, 'after'>, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

const connectionLost = (operation: string): StoreError =>
  new StoreError('outcome_unknown', `The connection was lost during ${operation}.`);

const refuse = (failure: StoreFailure, operation: string): Promise<never> =>
  Promise.reject(new StoreError(failure, `The store refused ${operation}.`));

/** Returns a function that returns the value or throws the error, to be called when the answer has arrived. */
async function captureAnswer<T>(work: Promise<T>): Promise<() => T> {
  try {
    const value = await work;
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Returns the port behind the link. Every method of the port must return a promise. */
export function withFaults<P extends object>(port: P, link: Link): P {
  return new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...parameters: unknown[]) =>
        link.call(String(name), () => method.apply(target, parameters) as Promise<unknown>, parameters);
    },
  });
}

/** Returns an ownership store behind the link. A session makes one call after the other, as a connection does. */
export function withOwnershipFaults(ownership: OwnershipStore, link: Link): OwnershipStore {
  return {
    moveLanes: (workerId, lanes) => link.call('moveLanes', () => ownership.moveLanes(workerId, lanes)),
    readFacts: () => link.call('readFacts', () => ownership.readFacts()),
    readTimeline: () => link.call('readTimeline', () => ownership.readTimeline()),
    connect: async (worker, onLost) => {
      const notifyProcess = (error: unknown): void => link.runInProcess(() => onLost(error));
      return withSessionFaults(
        await link.call('connect', () => ownership.connect(worker, notifyProcess)),
        link,
      );
    },
  };
}

function withSessionFaults(session: OwnershipSession, link: Link): OwnershipSession {
  let last: Promise<unknown> = Promise.resolve();
  const oneAtATime =
    <A extends unknown[], T>(operation: string, call: (...parameters: A) => Promise<T>) =>
    (...parameters: A): Promise<T> => {
      const answer = last.then(() => link.call(operation, () => call(...parameters)));
      last = answer.catch(() => {});
      return answer;
    };
  return {
    renew: oneAtATime('renew', session.renew),
    removeDeadWorkers: oneAtATime('removeDeadWorkers', session.removeDeadWorkers),
    takeShards: oneAtATime('takeShards', session.takeShards),
    countSurplusShards: oneAtATime('countSurplusShards', session.countSurplusShards),
    releaseShards: oneAtATime('releaseShards', session.releaseShards),
    unregister: oneAtATime('unregister', session.unregister),
    close: () => session.close(),
  };
}
