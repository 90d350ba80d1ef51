/**
 * Writes the deliveries of large fan-outs that the commit of their event left unwritten. Every process has a writer; the
 * store lets one of them write at a time. Tenants take turns, one slice each. All progress is in the store, so another
 * process continues where a killed one ended.
 *
 *   accepted ──▶ unwritten ──▶ waiting (routed to its lane)
 *                    │ ▲ └────▶ skipped: its endpoint was disabled or deleted meanwhile
 *                    └─┘ endpoints of the tenant changed: read them, write again; statement timeout: write fewer
 */
import type { Clock } from '../domain/clock.ts';
import { DebounceKeys } from '../domain/debounce.ts';
import type { EventContent } from '../domain/event.ts';
import { deliveryIdOf, timeOfId, type Uuid } from '../domain/ids.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { EventLookup, EventStore, NewDelivery } from '../ports/event-store.ts';
import type {
  FanOutSlice,
  FanOutStore,
  SkippedWithReason,
  SliceDeliveries,
  SliceResult,
} from '../ports/fan-out-store.ts';
import type { Commit } from '../ports/hand-over.ts';
import type { DeliveryRouter } from '../ports/stages.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import type { CommitPace, EndTurn } from './commit-pace.ts';
import { addDebounceKey, firstDueAt, isLate } from './event-record.ts';

export interface FanOutWriterOptions {
  readonly fanOuts: FanOutStore;
  readonly eventLookup: EventLookup;
  readonly eventStore: Pick<EventStore, 'now'>;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'get' | 'refresh'>;
  readonly router: DeliveryRouter;
  readonly pace: Pick<CommitPace, 'tryBegin' | 'waitUntilFree'>;
  readonly clock: Clock;
  readonly random: () => number;
  /** Deliveries per commit. */
  readonly sliceRows: number;
  /** True if no event was accepted for so long that no slice can appear before the next event is. */
  readonly isStoreQuiet: () => boolean;
  readonly onProblem: (what: string, error: unknown) => void;
}

const NO_DATA = Buffer.from('null');
/** How often to look for slices of processes that died, and of relays, which do not write slices. */
const POLL_MS = 1_000;
const PAUSE_AFTER_FAILURE_MS = 200;
/** The pause after a slice is at least as long as the slice took, because other processes accept events too. */
const LEAST_PAUSE_FACTOR = 1;
/** A tenant that changes its endpoints all the time loses its turn. */
const MAX_STALE_TRIES = 3;
/** After a statement timeout, slices are halved. After this many quick writes, their size doubles again. */
const SLICES_BEFORE_GROWTH = 10;

export class FanOutWriter implements Service {
  readonly #options: FanOutWriterOptions;
  #maxRows: number;
  #writtenSinceTimeout = 0;
  /** True if the last search found no slice while the store was quiet. Until an event is accepted, no slice can appear. */
  #isKnownEmpty = false;
  /** The tenant that had the last turn. */
  #tenant = '';
  /** The event of the last slice. */
  #event: EventContent | null = null;
  #state: 'new' | 'started' | 'stopped' = 'new';
  #running: Promise<void> | null = null;
  #runAgain = false;
  #cancelPoll: (() => void) | null = null;
  #endPause: (() => void) | null = null;

  constructor(options: FanOutWriterOptions) {
    this.#options = options;
    this.#maxRows = options.sliceRows;
  }

  start(): void {
    if (this.#state === 'new') this.#state = 'started';
    this.runSoon();
  }

  /** Call this when deliveries were left unwritten. */
  runSoon(): void {
    if (this.#state !== 'started') return;
    this.#runAgain = true;
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      this.#event = null;
      if (this.#state !== 'started') return;
      if (this.#runAgain) this.runSoon();
      else this.#pollLater();
    });
  }

  #pollLater(): void {
    const { clock, isStoreQuiet } = this.#options;
    this.#cancelPoll = clock.after(POLL_MS, () =>
      this.#isKnownEmpty && isStoreQuiet() ? this.#pollLater() : this.runSoon(),
    );
  }

  /** Resolves when the current slice is written. Other processes write the rest. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    this.#cancelPoll?.();
    this.#cancelPoll = null;
    this.#endPause?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    this.#runAgain = false;
    for (;;) {
      const endTurn = await this.#takeTurn();
      if (endTurn === null) return;
      try {
        const isWritten = await this.#writeNext();
        endTurn(isWritten ? LEAST_PAUSE_FACTOR : 0);
        if (!isWritten) return;
      } catch (error) {
        endTurn(LEAST_PAUSE_FACTOR);
        this.#options.onProblem('write the deliveries of a large fan-out', error);
        if (storeFailureOf(error) === 'timeout') this.#halveSlices();
        await this.#pause(PAUSE_AFTER_FAILURE_MS);
      }
    }
  }

  /** Resolves when a slice may be written. Null: the writer was stopped. */
  async #takeTurn(): Promise<EndTurn | null> {
    const { pace } = this.#options;
    while (this.#state === 'started') {
      const endTurn = pace.tryBegin();
      if (endTurn !== null) return endTurn;
      await new Promise<void>((resolve) => {
        this.#endPause = resolve;
        void pace.waitUntilFree().then(resolve);
      });
    }
    return null;
  }

  /** Writes one slice. Returns false if there is none, or if another process is writing one. */
  async #writeNext(): Promise<boolean> {
    const { fanOuts, endpoints, sliceRows, isStoreQuiet } = this.#options;
    const isQuiet = isStoreQuiet();
    const slice = await fanOuts.findNext(this.#tenant, this.#maxRows);
    this.#isKnownEmpty = isQuiet && slice === null;
    if (slice === null) return false;
    this.#tenant = slice.tenant;
    const event = await this.#loadEvent(slice.eventId);
    let result = await this.#write(slice, event);
    for (
      let tries = 0;
      result === 'stale' && tries < MAX_STALE_TRIES && this.#state === 'started';
      tries += 1
    ) {
      await endpoints.refresh();
      result = await this.#write(slice, event);
    }
    if (result === 'written' && this.#maxRows < sliceRows) this.#growSlices();
    return result !== 'busy';
  }

  #halveSlices(): void {
    this.#maxRows = Math.max(1, this.#maxRows >> 1);
    this.#writtenSinceTimeout = 0;
  }

  #growSlices(): void {
    this.#writtenSinceTimeout += 1;
    if (this.#writtenSinceTimeout % SLICES_BEFORE_GROWTH === 0)
      this.#maxRows = Math.min(this.#options.sliceRows, this.#maxRows * 2);
  }

  async #write(slice: FanOutSlice, event: EventContent | null): Promise<SliceResult> {
    const { fanOuts, endpoints, clock } = this.#options;
    const commit: Commit = { sentAt: clock.now(), endpointVersion: endpoints.version };
    const deliveries = this.#toDeliveries(slice, event, await this.#currentTime(slice.eventId));
    try {
      const result = await fanOuts.write(slice, deliveries, commit.endpointVersion);
      if (result === 'written') this.#route(deliveries, event, commit);
      return result;
    } catch (error) {
      // The statement may have written the slice. Its owners must then look for the deliveries in the store.
      if (storeFailureOf(error) === 'outcome_unknown') this.#route(deliveries, event, null);
      throw error;
    }
  }

  /**
   * Returns this process's time, or another one if that may have jumped, because deliveries could then be due in weeks:
   * the time in the event's id after a step of the clock, the earlier one of this and the store's time if the event seems old.
   */
  async #currentTime(eventId: Uuid): Promise<number> {
    const { clock, eventStore } = this.#options;
    const now = clock.now();
    if (clock.isSteady === false) return timeOfId(eventId);
    return isLate(eventId, now) ? Math.min(await eventStore.now(), now) : now;
  }

  #toDeliveries(slice: FanOutSlice, event: EventContent | null, now: number): SliceDeliveries {
    const keys = new DebounceKeys(event?.data ?? NO_DATA);
    const { endpoints, random } = this.#options;
    const { eventId, firstOrdinal, endpointIds, wasDisabled, deliverAt } = slice;
    const start = { deliverAt, isLate: isLate(eventId, now) };
    const waiting: NewDelivery[] = [];
    const skipped: SkippedWithReason[] = [];
    for (const [index, endpointId] of endpointIds.entries()) {
      const id = deliveryIdOf(eventId, firstOrdinal + index);
      const endpoint = endpoints.get(endpointId);
      if (endpoint === undefined || endpoint.deleted)
        skipped.push({ id, endpointId, reason: 'endpoint_deleted' });
      else if (wasDisabled || !endpoint.enabled)
        skipped.push({ id, endpointId, reason: 'endpoint_disabled' });
      else {
        const dueAt = firstDueAt(start, endpoint, now, random);
        const delivery = { id, endpointId, dueAt, fifo: endpoint.ordering === 'fifo' };
        waiting.push(addDebounceKey(delivery, endpoint.debounce, keys, now));
      }
    }
    return { waiting, skipped };
  }

  #route({ waiting }: SliceDeliveries, event: EventContent | null, commit: Commit | null): void {
    if (event === null || waiting.length === 0) return;
    this.#options.router.routeCommitted(
      waiting.map((delivery) => ({ delivery, event })),
      commit,
    );
  }

  /** All slices of an event need its payload. Null: the event was deleted. */
  async #loadEvent(id: Uuid): Promise<EventContent | null> {
    if (this.#event?.id !== id) this.#event = (await this.#options.eventLookup.load([id])).get(id) ?? null;
    return this.#event;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
