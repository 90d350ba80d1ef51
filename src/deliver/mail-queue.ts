/**
 * The messages that wait for one of the few connections to the mail server. All tenants share these, so one tenant must
 * not delay the others, and no tenant the operator:
 *
 * - Tenants take turns. A tenant has one message in flight; the next one waits.
 * - One connection is only for the operator's messages, which go before all others.
 * - The queue is bounded, for each tenant and for all of them.
 *
 *   add ──▶ waiting ──▶ sending ──▶ done (a connection is free again)
 *    │         └── withdraw: it is never sent
 *    └── full: refused
 *
 * A connection is free again only when the transport has ended its message, even if the attempt has timed out before. Otherwise
 * messages would wait inside the transport, and `withdraw` could not remove them.
 */

export interface MailQueueLimits {
  /** At least 2. */
  readonly connections: number;
  readonly waitingPerTenant: number;
  readonly waiting: number;
}

/** A message that was added. */
export interface QueuedMail {
  /** Resolves when the transport has sent the message. Rejects with its error. */
  readonly sent: Promise<void>;
  /** Removes the message if it waits. Returns false if it is being sent or was sent. */
  withdraw(): boolean;
}

type Send = () => Promise<void>;

/** The waiting messages of one tenant, or of the operator. */
interface Line {
  readonly waiting: Set<Send>;
  inFlight: number;
}

/** The operator's line. No tenant has this name. */
const OPERATOR = '';

export class MailQueue {
  readonly #limits: MailQueueLimits;
  /** In the order of their turns. A line that is empty and has nothing in flight is removed. */
  readonly #lines = new Map<string, Line>();
  #waitingOfTenants = 0;
  #inFlight = 0;
  #inFlightOfTenants = 0;

  constructor(limits: MailQueueLimits) {
    this.#limits = limits;
  }

  /**
   * Calls `send` when it is the message's turn. `tenant` is null for a message of the operator. Returns null if too many
   * messages wait.
   */
  add(tenant: string | null, send: Send): QueuedMail | null {
    const name = tenant ?? OPERATOR;
    const line = this.#lines.get(name) ?? { waiting: new Set(), inFlight: 0 };
    const { waitingPerTenant, waiting } = this.#limits;
    if (line.waiting.size >= waitingPerTenant) return null;
    if (name !== OPERATOR && this.#waitingOfTenants >= waiting) return null;
    this.#lines.set(name, line);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const run: Send = () => send().then(resolve, reject);
    line.waiting.add(run);
    if (name !== OPERATOR) this.#waitingOfTenants += 1;
    this.#sendNext();
    return { sent: promise, withdraw: () => this.#remove(name, line, run) };
  }

  #sendNext(): void {
    const { connections } = this.#limits;
    for (const [name, line] of this.#turns()) {
      if (this.#inFlight >= connections) return;
      const [run] = line.waiting;
      if (run === undefined || !this.#maySend(name, line)) continue;
      this.#start(name, line, run);
    }
  }

  /** The operator first. */
  *#turns(): Iterable<[string, Line]> {
    const own = this.#lines.get(OPERATOR);
    // Its messages are sent in order, as long as a connection is free.
    for (let left = own?.waiting.size ?? 0; left > 0; left -= 1) yield [OPERATOR, own!];
    for (const [name, line] of [...this.#lines]) if (name !== OPERATOR) yield [name, line];
  }

  #maySend(name: string, line: Line): boolean {
    if (name === OPERATOR) return true;
    return line.inFlight === 0 && this.#inFlightOfTenants < this.#limits.connections - 1;
  }

  #start(name: string, line: Line, run: Send): void {
    const ofTenant = name === OPERATOR ? 0 : 1;
    line.inFlight += 1;
    this.#inFlight += 1;
    this.#inFlightOfTenants += ofTenant;
    this.#remove(name, line, run);
    void run().finally(() => {
      line.inFlight -= 1;
      this.#inFlight -= 1;
      this.#inFlightOfTenants -= ofTenant;
      // Move it to the end: its next turn comes after those of all others.
      this.#lines.delete(name);
      this.#lines.set(name, line);
      this.#forgetEmpty(name, line);
      this.#sendNext();
    });
  }

  #remove(name: string, line: Line, run: Send): boolean {
    if (!line.waiting.delete(run)) return false;
    if (name !== OPERATOR) this.#waitingOfTenants -= 1;
    this.#forgetEmpty(name, line);
    return true;
  }

  #forgetEmpty(name: string, line: Line): void {
    if (line.waiting.size === 0 && line.inFlight === 0) this.#lines.delete(name);
  }
}
