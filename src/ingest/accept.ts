/**
 * The accept stage. A request becomes a row that waits; rows that wait are matched and written together by one
 * statement; after its commit every one of them is answered, and handed on.
 *
 *   waiting ──▶ matched ──▶ written ──▶ answered 202, handed to dispatch
 *      ▲           │ endpoints changed meanwhile: match again
 *      └───────────┤ deadlock, lock timeout: again
 *                  │ connection lost, nobody knows: the same ids again, guarded against writing twice
 *                  │ one bad value: in halves, until only the culprit fails
 *                  └ database away for too long: 503
 */
import { setImmediate } from 'node:timers/promises';
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent, PromisedEvent } from '../domain/event.ts';
import {
  deliveryIdOf,
  idPrefixes,
  MAX_DELIVERIES_PER_EVENT,
  newEventId,
  publicId,
  timeOfId,
  type Uuid,
} from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { delayMsBefore } from '../domain/retry.ts';
import { type EventRecord, idempotencyKeyName, type NewDelivery } from '../ports/accept-log.ts';
import type { Commit } from '../ports/hand-over.ts';
import type { Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { failureOf } from '../postgres/failures.ts';
import { acceptEvents, databaseNow, findKeyHolders } from '../postgres/queries/accept-events.ts';
import { loadIngestLimits } from '../postgres/queries/tenants.ts';
import type { Tracer } from '../telemetry/tracing.ts';
import { KnownTenants } from './known-tenants.ts';
import { hasWaited, problemOfId, seemsAhead } from './promised.ts';
import type { NewEvent } from './read-event.ts';
import { Subscriptions } from './subscriptions.ts';
import { TenantRates } from './tenant-rates.ts';
import {
  type Accepted,
  answerDuplicate,
  fingerprintOf,
  inDoubt,
  isDuplicate,
  isSomebodyElses,
  outboxSeqsOf,
  storedOptions,
  toAccepted,
  toContent,
  type Waiting,
  withoutKey,
  withoutRepeats,
} from './waiting.ts';

/** A delivery that has just been committed, for whoever sends it. */
export interface CommittedDelivery {
  readonly delivery: NewDelivery;
  readonly endpoint: Endpoint;
  readonly event: EventContent;
}

export interface AcceptOptions {
  readonly pool: Pool;
  /** For batches of the outbox; those of others go without it. */
  readonly outboxPool?: Pool;
  readonly endpoints: EndpointCache;
  readonly clock: Clock;
  readonly random: () => number;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly queueEvents: number;
  readonly queueBytes: number;
  readonly idempotencyTtlMs: number;
  readonly tenantPerSecond: number;
  readonly tenantBurst: number;
  /** How long to go on trying while the database does not answer. */
  readonly patienceMs: number;
  /** Called after each commit. Null: some may have been committed by an earlier try, look for them. */
  readonly committed: (deliveries: readonly CommittedDelivery[], commit: Commit | null) => void;
  /** There is none for an id as old as this. */
  readonly missingPartition: (oldestMs: number) => Promise<void>;
  readonly events?: AcceptEvents | undefined;
  /** Told of what was accepted, while somebody watches. */
  readonly tail?: { readonly open: boolean; accepted(event: Accepted): void };
  readonly written?: BatcherOptions<unknown>['written'];
  /** Told of every commit, where traces are wanted. */
  readonly tracer?: Pick<Tracer, 'stored'> | null;
  readonly watcherFailed?: (error: unknown) => void;
}

/** For whoever counts. */
export interface AcceptEvents {
  accepted(eventType: string, deliveries: number): void;
  /** Its idempotency key was known. */
  repeated(): void;
  /** A batch was matched again: an endpoint had changed meanwhile. */
  rematched(): void;
}

/** What an item costs in memory besides its payload. */
const ROW_OVERHEAD = 256;
const RETRY_PAUSE_MS = 100;
/** A few milliseconds of steps of filters; then sockets, timers and the proof of ownership get their turn. */
const FILTER_WORK_PER_TURN = 500_000;

export class Acceptor {
  readonly #options: AcceptOptions;
  readonly #subscriptions = new Subscriptions();
  readonly #rates: TenantRates;
  readonly #tenants: KnownTenants;
  readonly #batcher: Batcher<Waiting>;

  constructor(options: AcceptOptions) {
    this.#options = options;
    this.#rates = new TenantRates(options.tenantPerSecond, options.tenantBurst, options.clock);
    this.#tenants = new KnownTenants(options.pool);
    this.#subscriptions.update(options.endpoints.all());
    options.endpoints.onChange((changed) => this.#subscriptions.update(changed));
    this.#batcher = new Batcher<Waiting>({
      maxItems: options.batchRows,
      maxBytes: options.batchBytes,
      bytesOf: (item) => item.event.data.length + ROW_OVERHEAD,
      write: (batch) => this.#write(batch, false),
      written: options.written,
    });
  }

  get waitingEvents(): number {
    return this.#batcher.waitingItems;
  }

  get subscriptionLookups(): Subscriptions['lookups'] {
    return this.#subscriptions.lookups;
  }

  /** Some tenant was changed or deleted. */
  async tenantsChanged(): Promise<void> {
    this.#tenants.forget();
    await this.reloadTenantLimits();
  }

  async reloadTenantLimits(): Promise<void> {
    this.#rates.setOwn(await loadIngestLimits(this.#options.pool));
  }

  /** Resolves when everything that was taken in has been answered. */
  drained(): Promise<void> {
    return this.#batcher.drained();
  }

  async accept(event: NewEvent): Promise<Accepted> {
    this.#shedLoad(event);
    if (event.endpointIds !== null) await this.#checkTargets(event);
    const id = newEventId(this.#options.clock.now());
    const fingerprint = fingerprintOf(event);
    return new Promise((resolve, reject) => {
      this.#batcher.add({
        event,
        id,
        fingerprint,
        since: this.#options.clock.monotonic(),
        promised: null,
        resolve,
        reject,
      });
    });
  }

  /**
   * Takes in what has been committed elsewhere (see promised.ts), in this order, as one batch: an answer for each. All
   * are rows of the outbox, or none is. A `Problem` with code "invalid" is final; any other error may pass.
   */
  async acceptPromised(events: readonly PromisedEvent[]): Promise<(Accepted | Error)[]> {
    const answers = new Array<Accepted | Error>(events.length);
    const { clock, pool } = this.#options;
    const suspicious = events.some(({ id }) => seemsAhead(id, clock.now()));
    const now = suspicious ? await databaseNow(pool) : clock.now();
    const batch: Waiting[] = [];
    for (const [index, event] of events.entries()) {
      const problem = problemOfId(event.id, now);
      if (problem !== null) {
        answers[index] = problem;
        continue;
      }
      batch.push({
        event,
        id: event.id,
        fingerprint: fingerprintOf(event),
        since: clock.monotonic(),
        promised: { outboxSeq: event.outboxSeq, lostKey: null, inDoubt: false },
        resolve: (accepted) => {
          answers[index] = accepted;
        },
        reject: (error) => {
          answers[index] = error instanceof Error ? error : new Error(String(error));
        },
      });
    }
    if (batch.length > 0) await this.#write(batch, true);
    return answers;
  }

  #shedLoad(event: NewEvent): void {
    if (
      this.#batcher.waitingItems >= this.#options.queueEvents ||
      this.#batcher.waitingBytes + event.data.length > this.#options.queueBytes
    ) {
      throw new Problem(
        'overloaded',
        'More events are waiting to be stored than can be held. Try again shortly.',
        {
          retryAfterSeconds: 1,
        },
      );
    }
    const waitSeconds = this.#rates.take(event.tenant);
    if (waitSeconds > 0) {
      throw new Problem('rate_limited', `The tenant "${event.tenant}" publishes faster than its limit.`, {
        retryAfterSeconds: Math.ceil(waitSeconds),
      });
    }
  }

  async #checkTargets(event: NewEvent): Promise<void> {
    if (this.#problemOfTargets(event) === null) return;
    // It may have been made or changed a moment ago, through another process.
    await this.#options.endpoints.refresh();
    const problem = this.#problemOfTargets(event);
    if (problem !== null) throw problem;
  }

  #problemOfTargets({ tenant, endpointIds, deliverAt }: NewEvent): Problem | null {
    const scheduled = deliverAt !== null && deliverAt > this.#options.clock.now();
    for (const [index, id] of endpointIds!.entries()) {
      const endpoint = this.#subscriptions.get(tenant, id);
      if (endpoint === undefined)
        return invalidField(`endpoint_ids[${index}]`, 'there is no such enabled endpoint of this tenant');
      if (scheduled && endpoint.ordering === 'fifo')
        return invalidField(
          'deliver_at',
          `endpoint_ids[${index}] (${publicId(idPrefixes.endpoint, id)}) is a FIFO endpoint, which sends in the order of acceptance: leave deliver_at out, or that endpoint`,
        );
    }
    return null;
  }

  async #write(batch: readonly Waiting[], guarded: boolean): Promise<void> {
    const { unique, repeated } = withoutRepeats(batch);
    try {
      await this.#writeUnique(unique, guarded);
    } catch (error) {
      await this.#recover(unique, guarded, error);
    }
    // The same key twice in one batch: the second one finds the first one's row now.
    if (repeated.length > 0) await this.#write(repeated, guarded);
  }

  async #writeUnique(batch: readonly Waiting[], guarded: boolean): Promise<void> {
    const { pool, outboxPool, endpoints, clock, idempotencyTtlMs, tracer } = this.#options;
    const newTenants = this.#tenants.unknownOf(batch);
    if (newTenants !== null) await this.#tenants.add(newTenants);
    for (;;) {
      const { version } = endpoints;
      const matched = await this.#matchAll(batch);
      const rows = batch.map((item, index) => this.#toRow(item, matched[index]!));
      const outboxSeqs = outboxSeqsOf(batch);
      const batchStartedAt = clock.now();
      const answer = await acceptEvents(outboxSeqs === null ? pool : (outboxPool ?? pool), rows, {
        endpointVersion: version,
        mayBeStored: guarded,
        idempotencyTtlMs,
        outboxSeqs,
      });
      if (answer.stale) {
        this.#options.events?.rematched();
        await endpoints.refresh();
        continue;
      }
      if (tracer != null) this.#unharmed(() => traceCommit(tracer, batch, batchStartedAt, clock.now()));
      await this.#answer(batch, rows, matched, answer.written, {
        sentAt: batchStartedAt,
        endpointVersion: version,
      });
      return;
    }
  }

  /** Endpoints may change while others take their turn; then the version is no longer the one of this batch. */
  async #matchAll(batch: readonly Waiting[]): Promise<(readonly Endpoint[])[]> {
    const matched: (readonly Endpoint[])[] = [];
    let work = 0;
    for (const item of batch) {
      const wanted = isDuplicate(item) ? [] : this.#subscriptions.match(item.event);
      matched.push(wanted.slice(0, MAX_DELIVERIES_PER_EVENT));
      work += this.#subscriptions.takeFilterWork();
      if (work < FILTER_WORK_PER_TURN) continue;
      work = 0;
      await setImmediate();
    }
    return matched;
  }

  #toRow(item: Waiting, endpoints: readonly Endpoint[]): EventRecord {
    const { event, id, fingerprint } = item;
    const now = this.#options.clock.now();
    return {
      id,
      tenant: event.tenant,
      type: event.type,
      data: event.data,
      idempotencyKey: event.idempotencyKey,
      fingerprint,
      options: storedOptions(item),
      deliveries: endpoints.map((endpoint, ordinal) => ({
        id: deliveryIdOf(id, ordinal),
        endpointId: endpoint.id,
        dueAt: this.#firstDueAt(item, endpoint, now),
        fifo: endpoint.ordering === 'fifo',
      })),
    };
  }

  #firstDueAt({ event, id, promised }: Waiting, endpoint: Endpoint, now: number): number | null {
    const delayMs = delayMsBefore(endpoint.retry, 1, this.#options.random);
    // Order of acceptance and a time of one's own exclude each other. Who names a FIFO endpoint is told so; one that
    // merely subscribes gets the event at its turn.
    if (event.deliverAt !== null && event.deliverAt > now && endpoint.ordering !== 'fifo')
      return event.deliverAt + delayMs;
    if (delayMs > 0) return now + delayMs;
    return promised !== null && hasWaited(id, now) ? now : null;
  }

  async #answer(
    batch: readonly Waiting[],
    rows: readonly EventRecord[],
    matched: readonly (readonly Endpoint[])[],
    written: ReadonlySet<Uuid> | 'all',
    commit: Commit,
  ): Promise<void> {
    const committed: CommittedDelivery[] = [];
    const others: Waiting[] = [];
    for (const [index, item] of batch.entries()) {
      if (written !== 'all' && !written.has(item.id)) {
        others.push(item);
        continue;
      }
      const content = toContent(item);
      const row = rows[index]!;
      const endpoints = matched[index]!;
      for (const [ordinal, delivery] of row.deliveries.entries()) {
        committed.push({ delivery, endpoint: endpoints[ordinal]!, event: content });
      }
    }
    if (committed.length > 0) this.#options.committed(committed, commit);
    for (const [index, item] of batch.entries()) {
      if (written === 'all' || written.has(item.id)) this.#resolve(item, rows[index]!.deliveries.length);
    }
    if (others.length === 0) return;
    try {
      await this.#answerOthers(others, batch, rows, matched);
    } catch (error) {
      // These alone: the rest of the batch is stored, and answered.
      await this.#recover(others, true, error);
    }
  }

  /** `byAnother`: whoever stored it counts it and shows it, so that it is counted and shown once. */
  #resolve(item: Waiting, deliveries: number, byAnother = false): void {
    const { events, tail } = this.#options;
    const accepted = toAccepted(item, deliveries);
    item.resolve(accepted);
    if (byAnother) return;
    events?.accepted(item.event.type, deliveries);
    if (tail?.open) this.#unharmed(() => tail.accepted(accepted));
  }

  /** It is stored: whoever watches must not be able to make it look as if it were not. */
  #unharmed(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#options.watcherFailed?.(error);
    }
  }

  /** Those that this statement did not write: an earlier try did, or another event holds the key. */
  async #answerOthers(
    others: readonly Waiting[],
    batch: readonly Waiting[],
    rows: readonly EventRecord[],
    matched: readonly (readonly Endpoint[])[],
  ): Promise<void> {
    const keyed = others.filter((item) => item.event.idempotencyKey !== null);
    const holders = await findKeyHolders(
      this.#options.pool,
      keyed.map(({ event }) => ({ tenant: event.tenant, key: event.idempotencyKey! })),
    );
    const earlier: CommittedDelivery[] = [];
    const again: Waiting[] = [];
    for (const item of others) {
      const key = item.event.idempotencyKey;
      const holder = key === null ? undefined : holders.get(idempotencyKeyName(item.event.tenant, key));
      if (holder !== undefined && holder.eventId !== item.id) {
        this.#options.events?.repeated();
        if (item.promised === null) answerDuplicate(item, holder);
        else again.push(withoutKey(item, holder));
        continue;
      }
      if (key !== null && holder === undefined && (item.promised?.outboxSeq ?? null) === null) {
        // The event that held the key lost it while we asked (it expired). Nothing of ours was written. A row of the
        // outbox is still there then, and will be read again; or it is gone, and not ours.
        again.push(item);
        continue;
      }
      const index = batch.indexOf(item);
      for (const [ordinal, delivery] of rows[index]!.deliveries.entries()) {
        earlier.push({ delivery, endpoint: matched[index]![ordinal]!, event: toContent(item) });
      }
      this.#resolve(item, rows[index]!.deliveries.length, isSomebodyElses(item));
    }
    if (earlier.length > 0) this.#options.committed(earlier, null);
    if (again.length > 0) await this.#write(again, true);
  }

  async #recover(batch: readonly Waiting[], guarded: boolean, error: unknown): Promise<void> {
    const failure = failureOf(error);
    if (failure === 'bad_row') return this.#bisect(batch, guarded, error);
    if (failure === 'other') {
      // What a trigger, or a broken page, has against one of them is not held against its neighbours.
      if (batch.length > 1 && batch[0]!.promised !== null) return this.#bisect(batch, guarded, error);
      for (const item of batch) item.reject(error);
      return;
    }
    if (failure === 'no_partition') {
      await this.#options.missingPartition(Math.min(...batch.map(({ id }) => timeOfId(id)))).catch(() => {});
    }
    const { clock, patienceMs } = this.#options;
    const alive = batch.filter((item) => {
      const inTime = clock.monotonic() - item.since < patienceMs;
      if (!inTime) {
        item.reject(
          new Problem(
            'unavailable',
            'The database did not answer in time; it is not known whether the event was stored. Try again with the same idempotency key.',
            {
              retryAfterSeconds: 2,
              cause: error,
            },
          ),
        );
      }
      return inTime;
    });
    if (alive.length === 0) return;
    await new Promise<void>((resolve) => clock.after(RETRY_PAUSE_MS, resolve));
    // Once in doubt, always guarded: writing twice would deliver twice.
    if (failure === 'unknown') await this.#write(alive.map(inDoubt), true);
    else await this.#write(alive, guarded);
  }

  async #bisect(batch: readonly Waiting[], guarded: boolean, error: unknown): Promise<void> {
    if (batch.length === 1) {
      batch[0]!.reject(
        new Problem('invalid', 'The event cannot be stored: it has a value that the database refuses.', {
          cause: error,
        }),
      );
      return;
    }
    const middle = batch.length >> 1;
    await this.#write(batch.slice(0, middle), guarded);
    await this.#write(batch.slice(middle), guarded);
  }
}

function traceCommit(
  tracer: Pick<Tracer, 'stored'>,
  batch: readonly Waiting[],
  batchStartedAt: number,
  committedAt: number,
): void {
  for (const { id, event } of batch)
    tracer.stored({ id, headers: event.headers, batchStartedAt, committedAt });
}
