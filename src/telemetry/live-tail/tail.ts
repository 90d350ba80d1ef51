/**
 * The live tail shows a watcher of one process what all processes do.
 *
 *   somebody watches ─▶ its process announces the filters ─▶ the others send matching messages, at most ten times a second
 *   nobody watches   ─▶ nobody sends and nobody subscribes: a delivery costs one check of `isWatched`
 *
 * The live tail is not a record. Messages are left out when there are too many (`sampled`), when the other processes
 * cannot be reached, and when a watcher reads too slowly (`dropped`, by the watcher itself). Deliveries never wait for
 * it.
 */
import type { Clock } from '../../domain/clock.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Service } from '../../domain/lifecycle.ts';
import {
  type AcceptedEvent,
  acceptedMessage,
  attemptMessage,
  endpointMessage,
  matches,
  type SettledDelivery,
  type Subject,
  subjectOf,
  type TailFilter,
  type TailMessage,
  toServerSentEvent,
} from './message.ts';
import type { TailTransport } from './tail-channels.ts';
import { decodeBatch, decodeInterest, encodeBatch, encodeInterest, type TailBatch } from './wire.ts';

export interface Watcher {
  readonly filter: TailFilter;
  /** Writes `messages` server-sent events as one text. Never waits: a slow watcher loses them. */
  show(text: string, messages: number): void;
}

export interface LiveTailOptions {
  readonly clock: Clock;
  /** Identifies this process, which ignores its own messages. */
  readonly processName: string;
  readonly messagesPerSecond: number;
  /** How often a process with watchers announces their filters. */
  readonly announceMs: number;
  readonly notifier: TailTransport;
  readonly onProblem: (what: string, error: unknown) => void;
}

const FLUSH_MS = 100;
/** The budget of messages that only watchers of all tenants want. No tenant has this name. */
const ALL_TENANTS = '';
/** Other processes stop sending to a process that has missed this many announcements. */
export const MAX_MISSED_ANNOUNCEMENTS = 3;

export class LiveTail implements Service {
  readonly #options: LiveTailOptions;
  readonly #watchers = new Set<Watcher>();
  /** The filters of other processes, with the time at which they expire. */
  readonly #interests = new Map<string, { filters: readonly TailFilter[]; until: number }>();
  #others: readonly TailFilter[] = [];
  #gathered: { readonly message: TailMessage; readonly subject: Subject }[] = [];
  /** How many were gathered from each budget. */
  #spent = new Map<string, number>();
  #skipped = new Map<string, number>();
  #cancelFlush: (() => void) | null = null;
  #cancelAnnounce: (() => void) | null = null;
  #unsubscribe: (() => void) | null = null;
  #unsubscribeInterest: (() => void) | null = null;

  /** True if somebody watches, in any process. */
  isWatched = false;

  constructor(options: LiveTailOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#unsubscribeInterest ??= this.#options.notifier.subscribe('tailInterest', (payload) =>
      this.#onInterest(payload),
    );
  }

  async stop(): Promise<void> {
    this.#watchers.clear();
    this.#interests.clear();
    this.#update();
    this.#cancelFlush?.();
    this.#cancelAnnounce?.();
    this.#unsubscribe?.();
    this.#unsubscribeInterest?.();
    this.#unsubscribe = null;
    this.#unsubscribeInterest = null;
  }

  onAccepted(event: AcceptedEvent): void {
    const { tenant, type } = event;
    this.#gather({ tenant, endpointId: null, type, outcome: null }, () => acceptedMessage(event));
  }

  /** Shows settlements that moved their delivery. An attempt that was superseded changed nothing. */
  onSettled(settlements: readonly SettledDelivery[]): void {
    for (const settled of settlements) {
      const { tenant, endpointId, verdict, attempt } = settled;
      if (attempt === null) continue;
      this.#gather({ tenant, endpointId, type: attempt.eventType, outcome: verdict.kind }, () =>
        attemptMessage(settled, attempt),
      );
    }
  }

  /** Called only in the process that owns the endpoint. */
  circuitChanged(endpoint: Endpoint, circuit: string): void {
    if (!this.isWatched) return;
    this.#gather(subjectOfEndpoint(endpoint), () =>
      endpointMessage(endpoint, circuit, this.#options.clock.now()),
    );
  }

  /** Not sent to other processes: each of them notices changed endpoints itself. */
  endpointsChanged(endpoints: readonly Endpoint[]): void {
    if (this.#watchers.size === 0) return;
    for (const endpoint of endpoints) {
      const message = endpointMessage(endpoint, null, this.#options.clock.now());
      this.#show([{ message, subject: subjectOfEndpoint(endpoint) }], {});
    }
  }

  /** Resolves when the other processes have the filter and their messages arrive here. */
  async join(watcher: Watcher): Promise<void> {
    this.#watchers.add(watcher);
    this.#update();
    const { notifier } = this.#options;
    this.#unsubscribe ??= notifier.subscribe('tail', (payload) => this.#onMessages(payload));
    this.#announce();
    await notifier.flush();
  }

  leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher)) return;
    this.#update();
    if (this.#watchers.size === 0) {
      this.#cancelAnnounce?.();
      this.#cancelAnnounce = null;
      this.#unsubscribe?.();
      this.#unsubscribe = null;
    }
    this.#publishInterest();
  }

  #onInterest(payload: string): void {
    const interest = this.#read(decodeInterest, payload);
    if (interest === null || interest.from === this.#options.processName) return;
    const { from, filters } = interest;
    const { clock, announceMs } = this.#options;
    const forMs = announceMs * MAX_MISSED_ANNOUNCEMENTS;
    if (filters.length === 0) this.#interests.delete(from);
    else this.#interests.set(from, { filters, until: clock.monotonic() + forMs });
    this.#update();
    clock.after(forMs + 1, () => this.#update());
  }

  #update(): void {
    const now = this.#options.clock.monotonic();
    for (const [from, { until }] of this.#interests) if (until < now) this.#interests.delete(from);
    this.#others = [...this.#interests.values()].flatMap(({ filters }) => filters);
    this.isWatched = this.#watchers.size > 0 || this.#others.length > 0;
  }

  #gather(subject: Subject, make: () => TailMessage): void {
    const budget = this.#budgetOf(subject);
    if (budget === null) return;
    const spent = this.#spent.get(budget) ?? 0;
    if (spent < (this.#options.messagesPerSecond * FLUSH_MS) / 1000) {
      this.#spent.set(budget, spent + 1);
      this.#gathered.push({ message: make(), subject });
    } else this.#skipped.set(subject.tenant, (this.#skipped.get(subject.tenant) ?? 0) + 1);
    this.#cancelFlush ??= this.#options.clock.after(FLUSH_MS, () => this.#flush());
  }

  /**
   * Returns the budget that the message counts for, or null if nobody wants it. A tenant with a watcher of its own has a
   * budget of its own, so that the noise of others does not hide its messages.
   */
  #budgetOf(subject: Subject): string | null {
    let budget: string | null = null;
    for (const filter of this.#filters()) {
      if (!matches(filter, subject)) continue;
      if (filter.tenant !== null) return filter.tenant;
      budget = ALL_TENANTS;
    }
    return budget;
  }

  *#filters(): Generator<TailFilter> {
    for (const { filter } of this.#watchers) yield filter;
    yield* this.#others;
  }

  #flush(): void {
    this.#cancelFlush = null;
    const gathered = this.#gathered;
    const skipped = Object.fromEntries(this.#skipped);
    this.#gathered = [];
    this.#spent = new Map();
    this.#skipped = new Map();
    this.#show(gathered, skipped);
    if (this.#others.length === 0) return;
    const messages = gathered.flatMap(({ message, subject }) =>
      this.#others.some((filter) => matches(filter, subject)) ? [message] : [],
    );
    const { notifier, processName } = this.#options;
    notifier.publish('tail', encodeBatch({ from: processName, messages, skipped }));
  }

  #show(shown: readonly { message: TailMessage; subject: Subject }[], skipped: TailBatch['skipped']): void {
    if (this.#watchers.size === 0) return;
    const all = Object.values(skipped).reduce((sum, number) => sum + number, 0);
    const texts = shown.map(({ message }) => toServerSentEvent(message.event, message.data));
    for (const watcher of this.#watchers) {
      const { filter } = watcher;
      const fitting = texts.filter((_, index) => matches(filter, shown[index]!.subject));
      // A tenant must not learn how much others do.
      const missing = filter.tenant === null ? all : (skipped[filter.tenant] ?? 0);
      if (missing > 0) fitting.push(toServerSentEvent('sampled', { skipped: missing }));
      // In one write: a watcher checks between two writes whether its client keeps up.
      if (fitting.length > 0) watcher.show(fitting.join(''), fitting.length);
    }
  }

  #onMessages(payload: string): void {
    if (this.#watchers.size === 0) return;
    const batch = this.#read(decodeBatch, payload);
    if (batch === null || batch.from === this.#options.processName) return;
    this.#show(
      batch.messages.map((message) => ({ message, subject: subjectOf(message) })),
      batch.skipped,
    );
  }

  /** Returns null and reports the problem if the payload is invalid: other roles and versions of Posthorn may send one. */
  #read<T>(decode: (payload: string) => T, payload: string): T | null {
    try {
      return decode(payload);
    } catch (error) {
      this.#options.onProblem('read a live tail message of another process', error);
      return null;
    }
  }

  #announce(): void {
    this.#cancelAnnounce?.();
    this.#cancelAnnounce = this.#options.clock.after(this.#options.announceMs, () => this.#announce());
    this.#publishInterest();
  }

  #publishInterest(): void {
    const { notifier, processName } = this.#options;
    const filters = [...this.#watchers].map(({ filter }) => filter);
    notifier.publish('tailInterest', [encodeInterest({ from: processName, filters })]);
  }
}

const subjectOfEndpoint = ({ id, tenant }: Endpoint): Subject => ({
  tenant,
  endpointId: id,
  type: null,
  outcome: null,
});
