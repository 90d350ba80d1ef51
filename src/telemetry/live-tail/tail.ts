/**
 * The live tail: what all processes do, shown to whoever watches one of them.
 *
 *   somebody watches ─▶ NOTIFY "I want these" ─▶ the others send what fits, ten times a second at most
 *   nobody watches   ─▶ nobody sends, nobody listens: the way of a delivery pays for one look at `open`
 *
 * It is a window, not a record. Messages are left out when there are too many (`sampled`), when the other processes
 * cannot be reached, and when a watcher reads too slowly (`dropped`, by the watcher itself). Deliveries wait for none of it.
 */
import type { Clock } from '../../domain/clock.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
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
  toText,
} from './message.ts';
import { type Batch, decodeBatch, decodeInterest, encodeBatch, encodeInterest } from './wire.ts';

export interface Watcher {
  readonly filter: TailFilter;
  /** So many server-sent events as one text. Never waits: a watcher that is too slow loses them. */
  show(text: string, messages: number): void;
}

export interface LiveTailOptions {
  readonly clock: Clock;
  /** Names this process to the others. */
  readonly name: string;
  readonly messagesPerSecond: number;
  /** How often a process that has watchers says so. */
  readonly announceMs: number;
  readonly send: (payloads: readonly string[]) => Promise<void>;
  readonly announce: (payload: string) => Promise<void>;
  /** Hears what the others send, until the returned function is called. */
  readonly listen: (heard: (payload: string) => void, lost: () => void) => Promise<() => void>;
  readonly problem: (what: string, error: unknown) => void;
}

const FLUSH_MS = 100;
const LISTEN_AGAIN_MS = 1000;
/** So many announcements may be lost before others stop sending. */
const PATIENCE = 3;

export class LiveTail {
  readonly #options: LiveTailOptions;
  readonly #watchers = new Set<Watcher>();
  /** Of other processes, with the time at which they are not believed any more. */
  readonly #interests = new Map<string, { filters: readonly TailFilter[]; until: number }>();
  #others: readonly TailFilter[] = [];
  #gathered: { readonly message: TailMessage; readonly subject: Subject }[] = [];
  #skipped = new Map<string, number>();
  #cancelFlush: (() => void) | null = null;
  #cancelAnnounce: (() => void) | null = null;
  #sending = false;
  #listening: Promise<(() => void) | null> | null = null;

  /** Whether anybody watches, anywhere. */
  open = false;

  constructor(options: LiveTailOptions) {
    this.#options = options;
  }

  accepted(event: AcceptedEvent): void {
    const { tenant, type } = event;
    this.#gather({ tenant, endpointId: null, type, outcome: null }, () => acceptedMessage(event));
  }

  /** Those that were moved on: an attempt that somebody else was faster with changed nothing. */
  settled(settlements: readonly SettledDelivery[]): void {
    for (const settled of settlements) {
      const { tenant, endpointId, verdict, attempt } = settled;
      if (attempt === null) continue;
      this.#gather({ tenant, endpointId, type: attempt.eventType, outcome: verdict.kind }, () =>
        attemptMessage(settled, attempt),
      );
    }
  }

  /** By the one process that owns the endpoint. */
  circuitChanged(endpoint: Endpoint, circuit: string): void {
    if (!this.open) return;
    this.#gather(subjectOfEndpoint(endpoint), () =>
      endpointMessage(endpoint, circuit, this.#options.clock.now()),
    );
  }

  /** Every process hears of these by itself, so they are not sent to others. */
  endpointsChanged(endpoints: readonly Endpoint[]): void {
    if (this.#watchers.size === 0) return;
    for (const endpoint of endpoints) {
      const message = endpointMessage(endpoint, null, this.#options.clock.now());
      this.#show([{ message, subject: subjectOfEndpoint(endpoint) }], {});
    }
  }

  /** Resolves when the others have been told, and can be heard. */
  async join(watcher: Watcher): Promise<void> {
    this.#watchers.add(watcher);
    this.#update();
    this.#listening ??= this.#listen();
    await this.#listening;
    await this.#announce();
  }

  leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher)) return;
    this.#update();
    if (this.#watchers.size === 0) {
      this.#cancelAnnounce?.();
      this.#cancelAnnounce = null;
      void this.#unlisten();
    }
    void this.#tell();
  }

  /** Another process said what it wants to hear about. */
  heardInterest(payload: string): void {
    const interest = this.#read(decodeInterest, payload);
    if (interest === null || interest.from === this.#options.name) return;
    const { from, filters } = interest;
    const { clock, announceMs } = this.#options;
    const forMs = announceMs * PATIENCE;
    if (filters.length === 0) this.#interests.delete(from);
    else this.#interests.set(from, { filters, until: clock.monotonic() + forMs });
    this.#update();
    clock.after(forMs + 1, () => this.#update());
  }

  async stop(): Promise<void> {
    this.#watchers.clear();
    this.#interests.clear();
    this.#update();
    this.#cancelFlush?.();
    this.#cancelAnnounce?.();
    await this.#unlisten();
  }

  #update(): void {
    const now = this.#options.clock.monotonic();
    for (const [from, { until }] of this.#interests) if (until < now) this.#interests.delete(from);
    this.#others = [...this.#interests.values()].flatMap(({ filters }) => filters);
    this.open = this.#watchers.size > 0 || this.#others.length > 0;
  }

  #gather(subject: Subject, make: () => TailMessage): void {
    if (!this.#isWanted(subject)) return;
    if (this.#gathered.length < (this.#options.messagesPerSecond * FLUSH_MS) / 1000)
      this.#gathered.push({ message: make(), subject });
    else this.#skipped.set(subject.tenant, (this.#skipped.get(subject.tenant) ?? 0) + 1);
    this.#cancelFlush ??= this.#options.clock.after(FLUSH_MS, () => this.#flush());
  }

  #isWanted(subject: Subject): boolean {
    for (const { filter } of this.#watchers) if (matches(filter, subject)) return true;
    return this.#others.some((filter) => matches(filter, subject));
  }

  #flush(): void {
    this.#cancelFlush = null;
    const gathered = this.#gathered;
    const skipped = Object.fromEntries(this.#skipped);
    this.#gathered = [];
    this.#skipped = new Map();
    this.#show(gathered, skipped);
    if (this.#others.length === 0) return;
    const messages = gathered.flatMap(({ message, subject }) =>
      this.#others.some((filter) => matches(filter, subject)) ? [message] : [],
    );
    void this.#send({ from: this.#options.name, messages, skipped });
  }

  async #send(batch: Batch): Promise<void> {
    const payloads = encodeBatch(batch);
    // The database is slow: what could not be sent by now is of no interest later.
    if (payloads.length === 0 || this.#sending) return;
    this.#sending = true;
    try {
      await this.#options.send(payloads);
    } catch (error) {
      this.#options.problem('send to live tails', error);
    } finally {
      this.#sending = false;
    }
  }

  #show(shown: readonly { message: TailMessage; subject: Subject }[], skipped: Batch['skipped']): void {
    if (this.#watchers.size === 0) return;
    const all = Object.values(skipped).reduce((sum, number) => sum + number, 0);
    const texts = shown.map(({ message }) => toText(message.event, message.data));
    for (const watcher of this.#watchers) {
      const { filter } = watcher;
      const fitting = texts.filter((_, index) => matches(filter, shown[index]!.subject));
      // A tenant is told of its own only.
      const missing = filter.tenant === null ? all : (skipped[filter.tenant] ?? 0);
      if (missing > 0) fitting.push(toText('sampled', { skipped: missing }));
      // In one piece: whether a watcher keeps up shows between two of them, not within one.
      if (fitting.length > 0) watcher.show(fitting.join(''), fitting.length);
    }
  }

  #heard(payload: string): void {
    if (this.#watchers.size === 0) return;
    const batch = this.#read(decodeBatch, payload);
    if (batch === null || batch.from === this.#options.name) return;
    this.#show(
      batch.messages.map((message) => ({ message, subject: subjectOf(message) })),
      batch.skipped,
    );
  }

  /** Anybody who can connect to the database can send anything, and other versions may. */
  #read<T>(decode: (payload: string) => T, payload: string): T | null {
    try {
      return decode(payload);
    } catch (error) {
      this.#options.problem('understand another process about live tails', error);
      return null;
    }
  }

  async #announce(): Promise<void> {
    this.#cancelAnnounce?.();
    this.#cancelAnnounce = null;
    // Whoever joined may have left while it was being listened for.
    if (this.#watchers.size === 0) return;
    this.#cancelAnnounce = this.#options.clock.after(this.#options.announceMs, () => void this.#announce());
    await this.#tell();
  }

  async #tell(): Promise<void> {
    const filters = [...this.#watchers].map(({ filter }) => filter);
    try {
      await this.#options.announce(encodeInterest({ from: this.#options.name, filters }));
    } catch (error) {
      this.#options.problem('announce a live tail', error);
    }
  }

  async #listen(): Promise<(() => void) | null> {
    const lost = (): void => {
      this.#listening = null;
      this.#options.clock.after(LISTEN_AGAIN_MS, () => {
        if (this.#watchers.size > 0) this.#listening ??= this.#listen();
      });
    };
    try {
      return await this.#options.listen((payload) => this.#heard(payload), lost);
    } catch (error) {
      this.#options.problem('listen for live tails', error);
      lost();
      return null;
    }
  }

  async #unlisten(): Promise<void> {
    const listening = this.#listening;
    this.#listening = null;
    (await listening)?.();
  }
}

const subjectOfEndpoint = ({ id, tenant }: Endpoint): Subject => ({
  tenant,
  endpointId: id,
  type: null,
  outcome: null,
});
