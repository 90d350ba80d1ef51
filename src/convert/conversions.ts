/**
 * The convert stage of an attempt: gives an event the version that its endpoint pins.
 *
 *   no pin, thin payload, already in that version ─────────────────────────────▶ ready, as published
 *   no such version, no chain of converters ───────────────────────────────────▶ ready, as published and flagged
 *   retry ─▶ sent before in that version? ── yes ──────────────────────────────▶ ready, with the same bytes
 *              │ no
 *   first try, replay ─▶ cached? ─▶ convert in a process ─▶ store ─▶ cache ────▶ ready, converted
 *                                     │ failed               │ the payload is gone: gone
 *                                     ▼ failed, busy         ▼ the store does not answer: busy
 *
 * The result is stored before it is sent, and the stored bytes are sent: if two workers convert the same event with an
 * impure converter, both send the bytes that were stored first. Concurrent requests for the same result share one conversion.
 */
import { Batcher } from '../domain/batcher.ts';
import {
  CONVERSION_HEADER,
  type ConversionNote,
  deprecationHeaders,
  earlierDeprecation,
  writeConversionNote,
} from '../domain/conversion-header.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { type EventContent, RESERVED_TYPE_PREFIX } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import {
  type AsPublishedReason,
  resolvePin,
  type TypeVersion,
  type VersionStep,
  versionOfEvent,
} from '../domain/version-pins.ts';
import {
  type ConversionKey,
  type ConversionStore,
  conversionName,
  type SentQuery,
  type StoredConversion,
} from '../ports/conversion-store.ts';
import type { ConversionRequest, ConversionResult, PayloadConverter } from '../ports/stages.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import { ConversionCache } from './conversion-cache.ts';
import type { PoolAnswer, PoolRequest } from './converter-pool.ts';

/** The converters of the configuration, and how to run them. */
export interface ConverterRunner {
  readonly hash: string;
  findPath(type: string, from: string, to: string): readonly VersionStep[] | null;
  run(request: PoolRequest, done: (answer: PoolAnswer) => void): void;
}

export interface ConversionObserver {
  onConverted(result: 'converted' | 'failed' | 'reused', durationMs: number): void;
  onAsPublished(reason: AsPublishedReason): void;
}

export interface ConversionsOptions {
  readonly versions: VersionDirectory;
  readonly store: ConversionStore;
  /** Null: there is no configuration. */
  readonly converters: ConverterRunner | null;
  readonly observer?: ConversionObserver | undefined;
  readonly now: () => number;
  readonly onProblem: (what: string, error: unknown) => void;
}

type Done = (result: ConversionResult) => void;
/** undefined: the store does not answer, or not yet. */
type Waiting<Item, Answer> = Item & { readonly done: (answer: Answer | null | undefined) => void };

type Plan =
  | { readonly kind: 'as_is'; readonly source: TypeVersion | null }
  | {
      readonly kind: 'as_published';
      readonly source: TypeVersion | null;
      readonly reason: AsPublishedReason;
    }
  | { readonly kind: 'convert'; readonly source: TypeVersion; readonly target: TypeVersion };

interface Task {
  readonly request: ConversionRequest;
  readonly source: TypeVersion;
  readonly target: TypeVersion;
}

/** What an endpoint would get. */
export interface Preview {
  /** The version of `data`. Null: it is not known. */
  readonly version: string | null;
  /** Null: the conversion failed. */
  readonly data: Buffer | null;
  readonly note: ConversionNote | null;
  readonly error: string | null;
}

export interface ConversionTrial {
  readonly tenant: string;
  readonly type: string;
  readonly from: string;
  readonly to: string;
  readonly data: Buffer;
}

/** Why a trial was not converted. */
export const describeBusy = ({ pausedForMs }: { readonly pausedForMs?: number }): string =>
  pausedForMs === undefined
    ? 'Too many conversions wait. Try again.'
    : `The converter hung or crashed several times in a row. Posthorn runs it again in ${Math.ceil(pausedForMs / 1000)} s.`;

/** Bounds `#tooLarge`, the names of results that are too large for the cache. */
const MAX_TOO_LARGE = 1_000;
const BATCH_ITEMS = 100;
const BATCH_BYTES = 4 * 1024 * 1024;

export class Conversions implements PayloadConverter {
  readonly #options: ConversionsOptions;
  readonly #cache = new ConversionCache();
  /** The callbacks that wait for a result, by its name. */
  readonly #waiting = new Map<string, ((answer: PoolAnswer | { readonly kind: 'gone' }) => void)[]>();
  /** Results that are stored and too large for the cache. */
  readonly #tooLarge = new Set<string>();
  readonly #storeBatcher: Batcher<Waiting<StoredConversion, Buffer>>;
  readonly #sentBatcher: Batcher<Waiting<SentQuery, StoredConversion>>;

  constructor(options: ConversionsOptions) {
    this.#options = options;
    this.#storeBatcher = new Batcher({
      maxItems: BATCH_ITEMS,
      maxBytes: BATCH_BYTES,
      bytesOf: ({ data }) => data.length,
      write: (batch) => this.#keep(batch),
    });
    this.#sentBatcher = new Batcher({
      maxItems: BATCH_ITEMS,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: (batch) => this.#findSent(batch),
    });
  }

  needsConversion(endpoint: Endpoint): boolean {
    return endpoint.apiVersion !== null || this.#options.versions.hasDeprecations;
  }

  expunge(eventId: Uuid): void {
    this.#cache.expunge(eventId);
  }

  deprecationHeadersOf(events: readonly EventContent[]): Readonly<Record<string, string>> | null {
    const { versions } = this.#options;
    if (!versions.hasDeprecations) return null;
    return deprecationHeaders(
      events.map(({ id, type, schemaVersion }) => {
        const version = versionOfEvent(versions.versionsOf(type), schemaVersion, timeOfId(id));
        return earlierDeprecation(versions.deprecationOf(type), version);
      }),
    );
  }

  convert(request: ConversionRequest, done: Done): void {
    const { endpoint, event, delivery } = request;
    const plan = this.#plan(endpoint, event);
    if (plan.kind === 'as_is') return done(this.#ready(event, plan.source, null));
    if (plan.kind === 'as_published') return this.#sendAsPublished(event, plan.source, plan.reason, done);
    const task = { request, ...plan };
    if (delivery.attempts === delivery.attemptsBeforeReplay) return this.#convertAnew(task, done);
    this.#sentBatcher.add({
      deliveryId: delivery.id,
      afterAttempt: delivery.attemptsBeforeReplay,
      done: (sent) => {
        if (sent === undefined) done({ kind: 'busy' });
        else if (sent === null || sent.version !== plan.target.name) this.#convertAnew(task, done);
        else {
          this.#options.observer?.onConverted('reused', 0);
          done(this.#converted(task, sent.converter, sent.data));
        }
      },
    });
  }

  /** Returns what an endpoint would get, without storing it. */
  async preview(
    endpoint: Pick<Endpoint, 'apiVersion' | 'payload' | 'tenant'>,
    event: EventContent,
  ): Promise<Preview> {
    const plan = this.#plan(endpoint, event);
    const asPublished = { version: plan.source?.name ?? null, data: event.data, error: null };
    if (plan.kind === 'as_is') return { ...asPublished, note: null };
    const flagged = (reason: AsPublishedReason): Preview => ({
      ...asPublished,
      note: { status: 'as_published', reason },
    });
    if (plan.kind === 'as_published') return flagged(plan.reason);
    const [from, to] = [plan.source.name, plan.target.name];
    const answer = await this.tryConversion({
      tenant: endpoint.tenant,
      type: event.type,
      from,
      to,
      data: event.data,
    });
    if (answer.kind === 'no_converter') return flagged('no_converter');
    if (answer.kind !== 'converted') {
      const error = answer.kind === 'failed' ? answer.message : describeBusy(answer);
      return { version: to, data: null, note: null, error };
    }
    const note = { status: 'converted', from, to, converter: this.#options.converters!.hash } as const;
    return { version: to, data: answer.data, note, error: null };
  }

  /** Converts data between two versions, without storing it. */
  tryConversion({
    tenant,
    type,
    from,
    to,
    data,
  }: ConversionTrial): Promise<PoolAnswer | { readonly kind: 'no_converter' }> {
    const { converters } = this.#options;
    const path = converters?.findPath(type, from, to) ?? null;
    if (converters === null || path === null) return Promise.resolve({ kind: 'no_converter' });
    if (path.length === 0) return Promise.resolve({ kind: 'converted', data });
    return new Promise((resolve) => converters.run({ tenant, type, path, data }, resolve));
  }

  #plan(endpoint: Pick<Endpoint, 'apiVersion' | 'payload'>, event: EventContent): Plan {
    const versions = this.#options.versions.versionsOf(event.type);
    const source = versionOfEvent(versions, event.schemaVersion, timeOfId(event.id));
    const pin = endpoint.apiVersion;
    if (pin === null || endpoint.payload === 'thin' || event.type.startsWith(RESERVED_TYPE_PREFIX))
      return { kind: 'as_is', source };
    const target = resolvePin(versions, pin);
    if (source === null || target === null)
      return {
        kind: 'as_published',
        source,
        reason: versions.length === 0 ? 'no_versions' : 'no_matching_version',
      };
    return source.name === target.name ? { kind: 'as_is', source } : { kind: 'convert', source, target };
  }

  #sendAsPublished(
    event: EventContent,
    source: TypeVersion | null,
    reason: AsPublishedReason,
    done: Done,
  ): void {
    this.#options.observer?.onAsPublished(reason);
    done(this.#ready(event, source, { status: 'as_published', reason }));
  }

  #convertAnew(task: Task, done: Done): void {
    const { converters } = this.#options;
    const { event } = task.request;
    const path = converters?.findPath(event.type, task.source.name, task.target.name) ?? null;
    if (converters === null || path === null)
      return this.#sendAsPublished(event, task.source, 'no_converter', done);
    const { hash } = converters;
    const key: ConversionKey = { eventId: event.id, version: task.target.name, converter: hash };
    const cached = this.#cache.get(key);
    if (cached !== undefined) return done(this.#converted(task, hash, cached));
    const finish = (answer: PoolAnswer | { readonly kind: 'gone' }): void =>
      done(answer.kind === 'converted' ? this.#converted(task, hash, answer.data) : answer);
    const name = conversionName(key);
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) return void waiting.push(finish);
    this.#waiting.set(name, [finish]);
    const finishAll = (answer: PoolAnswer | { readonly kind: 'gone' }): void => {
      const finishers = this.#waiting.get(name) ?? [];
      this.#waiting.delete(name);
      for (const each of finishers) this.#call(() => each(answer));
    };
    if (this.#tooLarge.has(name)) void this.#readStored(task, path, key, finishAll);
    else this.#run(task, path, key, finishAll);
  }

  /** Reads a result that is too large for the cache, instead of converting once per delivery. */
  async #readStored(
    task: Task,
    path: readonly VersionStep[],
    key: ConversionKey,
    done: (answer: PoolAnswer | { readonly kind: 'gone' }) => void,
  ): Promise<void> {
    let stored: Buffer | null | undefined;
    try {
      stored = await this.#options.store.find(key);
    } catch (error) {
      this.#options.onProblem('read converted payloads', error);
    }
    if (stored === undefined) done({ kind: 'busy' });
    else if (stored === null) this.#run(task, path, key, done);
    else done({ kind: 'converted', data: stored });
  }

  #run(
    { request: { endpoint, event } }: Task,
    path: readonly VersionStep[],
    key: ConversionKey,
    done: (answer: PoolAnswer | { readonly kind: 'gone' }) => void,
  ): void {
    const { converters, observer, now } = this.#options;
    const startedAt = now();
    converters!.run({ tenant: endpoint.tenant, type: event.type, path, data: event.data }, (answer) => {
      if (answer.kind === 'busy') return done(answer);
      observer?.onConverted(answer.kind, now() - startedAt);
      if (answer.kind === 'failed') return done(answer);
      this.#storeBatcher.add({
        ...key,
        data: answer.data,
        done: (stored) => {
          if (stored === undefined) return done({ kind: 'busy' });
          if (stored === null) return done({ kind: 'gone' });
          if (!this.#cache.add(key, stored)) this.#markTooLarge(conversionName(key));
          done({ kind: 'converted', data: stored });
        },
      });
    });
  }

  #markTooLarge(name: string): void {
    this.#tooLarge.add(name);
    if (this.#tooLarge.size > MAX_TOO_LARGE) this.#tooLarge.delete(this.#tooLarge.values().next().value!);
  }

  async #keep(batch: readonly Waiting<StoredConversion, Buffer>[]): Promise<void> {
    let stored: Map<string, Buffer | null> | undefined;
    try {
      stored = await this.#options.store.keep(batch.map(({ done: _, ...conversion }) => conversion));
    } catch (error) {
      this.#options.onProblem('store converted payloads', error);
    }
    for (const each of batch) this.#call(() => each.done(stored?.get(conversionName(each))));
  }

  async #findSent(batch: readonly Waiting<SentQuery, StoredConversion>[]): Promise<void> {
    let sent: Map<Uuid, StoredConversion> | undefined;
    try {
      sent = await this.#options.store.findSent(batch.map(({ done: _, ...query }) => query));
    } catch (error) {
      this.#options.onProblem('read converted payloads', error);
    }
    for (const { deliveryId, done } of batch)
      this.#call(() => done(sent === undefined ? undefined : (sent.get(deliveryId) ?? null)));
  }

  /** One delivery's error must not keep the others of its batch waiting, nor stop the next batch. */
  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.onProblem('pass on a converted payload', error);
    }
  }

  #converted(
    { request: { event }, source, target }: Task,
    converter: string,
    data: Buffer,
  ): ConversionResult {
    const note = { status: 'converted', from: source.name, to: target.name, converter } as const;
    return this.#ready({ ...event, data, schemaVersion: target.name }, target, note);
  }

  /** `version` is the one that is sent. Null: it is not known. */
  #ready(event: EventContent, version: TypeVersion | null, note: ConversionNote | null): ConversionResult {
    const deprecation = deprecationHeaders([
      earlierDeprecation(this.#options.versions.deprecationOf(event.type), version),
    ]);
    if (note === null) return { kind: 'ready', event, headers: deprecation };
    return {
      kind: 'ready',
      event,
      headers: { ...deprecation, [CONVERSION_HEADER]: writeConversionNote(note) },
    };
  }
}
