export interface GateLimits {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** The same for the calls of one group, such as a tenant. Absent: only the limits for all calls apply. */
  readonly perGroup?: { readonly maxRunning: number; readonly maxWaiting: number };
}

interface Waiter {
  readonly group: string;
  start(): void;
}

/** Lets a limited number of calls run at once and a limited number wait. Every further call is refused. */
export class Gate {
  readonly #limits: GateLimits;
  readonly #waiting: Waiter[] = [];
  /** The group of each call that runs. */
  readonly #running: string[] = [];

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** Returns the result of `work`, or null if too many calls wait already or `signal` aborts while this call waits. */
  async run<T>(
    work: () => Promise<T>,
    { group = '', signal }: { readonly group?: string; readonly signal?: AbortSignal } = {},
  ): Promise<T | null> {
    if (this.#canStart(group)) this.#running.push(group);
    else if (!this.#canWait(group) || !(await this.#wait(group, signal))) return null;
    try {
      return await work();
    } finally {
      this.#running.splice(this.#running.indexOf(group), 1);
      this.#startNext();
    }
  }

  #canStart(group: string): boolean {
    const { maxRunning, perGroup } = this.#limits;
    if (this.#running.length >= maxRunning) return false;
    return (
      perGroup === undefined || this.#running.filter((one) => one === group).length < perGroup.maxRunning
    );
  }

  #canWait(group: string): boolean {
    const { maxWaiting, perGroup } = this.#limits;
    if (this.#waiting.length >= maxWaiting) return false;
    return (
      perGroup === undefined ||
      this.#waiting.filter((waiter) => waiter.group === group).length < perGroup.maxWaiting
    );
  }

  /** Returns whether the call may run: false if `signal` aborted first. */
  #wait(group: string, signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        resolve(false);
      };
      const waiter: Waiter = {
        group,
        start: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve(true);
        },
      };
      this.#waiting.push(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Starts the first waiting call whose group may run. */
  #startNext(): void {
    const index = this.#waiting.findIndex(({ group }) => this.#canStart(group));
    if (index === -1) return;
    const [next] = this.#waiting.splice(index, 1);
    this.#running.push(next!.group);
    next!.start();
  }
}
