/**
 * Reads the events of a batch. A body of 10 MiB takes tenths of a second, so the reader lets the process do other work
 * after every 128 KiB.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { NewEvent } from '../domain/event.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import {
  expectEnd,
  JsonDepthError,
  JsonFieldsError,
  type Span,
  skipSpace,
  startsArray,
  startsObject,
  ValueSkipper,
  walkArray,
  walkObject,
} from './json-scan.ts';
import {
  expectUtf8,
  MAX_FIELDS,
  type ReadContext,
  type ReadLimits,
  toEvent,
  toReadError,
  unknownFields,
} from './read-event.ts';

const BYTES_PER_TURN = 128 * 1024;

/** Deeper than the limit for an event, so that one event that is nested too deeply does not fail its whole batch. */
const BATCH_NESTING = 10_000;

/** The fields of an item of a batch. Null: the item is not an object. An error: it is nested too deeply, or has too many fields. */
type BatchItem = Map<string, Span> | JsonDepthError | JsonFieldsError | null;

interface ScannedItem {
  readonly item: BatchItem;
  readonly bytes: number;
}

interface ScannedEvents {
  readonly items: readonly ScannedItem[];
  /** Of all items, also those beyond the limit. */
  readonly count: number;
  /** The position after the array. */
  readonly end: number;
}

/** Returns one entry per item of `{events: […]}`: an invalid item is a `Problem` and does not fail the others. */
export async function readBatch(
  body: Buffer,
  limits: ReadLimits,
  context: ReadContext,
  maxEvents: number,
): Promise<(NewEvent | Problem)[]> {
  expectUtf8(body);
  try {
    const { items, count } = await new BatchScan(body, limits.maxNesting).scan(maxEvents);
    if (count === 0) throw invalidField('events', 'must have at least one event');
    if (count > maxEvents)
      throw invalidField('events', `must have at most ${maxEvents} events, has ${count}`);
    const events: (NewEvent | Problem)[] = [];
    let readBytes = 0;
    for (const [index, { item, bytes }] of items.entries()) {
      events.push(readItem(body, item, limits, contextOfItem(item, index, context)));
      readBytes += bytes;
      if (readBytes < BYTES_PER_TURN) continue;
      readBytes = 0;
      await yieldToEventLoop();
    }
    return events;
  } catch (error) {
    throw toReadError(error);
  }
}

function readItem(
  body: Buffer,
  item: BatchItem,
  limits: ReadLimits,
  context: ReadContext,
): NewEvent | Problem {
  try {
    if (item === null) throw invalidField('body', 'each event must be a JSON object');
    if (item instanceof Error) throw toReadError(item);
    const event = toEvent(body, item, limits, context);
    // Copied, so that a pending event does not keep the whole batch in memory.
    return { ...event, data: Buffer.from(event.data) };
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** Derives a key for each event from the one header of the batch, so that the whole batch can be sent again. */
function contextOfItem(item: BatchItem, index: number, context: ReadContext): ReadContext {
  if (context.idempotencyKey === null || !(item instanceof Map)) return context;
  const idempotencyKey = item.has('idempotency_key') ? null : `${context.idempotencyKey}#${index}`;
  return { ...context, idempotencyKey };
}

/** Scans a body once, in turns with the other work of the process. */
class BatchScan {
  readonly #body: Buffer;
  readonly #maxNesting: number;
  #turnEndsAt = BYTES_PER_TURN;

  constructor(body: Buffer, maxNesting: number) {
    this.#body = body;
    this.#maxNesting = maxNesting;
  }

  /** Items beyond `maxEvents` are only counted. */
  async scan(maxEvents: number): Promise<ScannedEvents> {
    const body = this.#body;
    const start = skipSpace(body, 0);
    if (!startsObject(body, start)) {
      expectEnd(body, await this.#skip(start, this.#maxNesting));
      throw invalidField('events', 'must be an array of events');
    }
    let events: ScannedEvents | null = null;
    const unknown: string[] = [];
    const fields = walkObject(body, start, MAX_FIELDS);
    let field = fields.next();
    while (!field.done) {
      const { name, start: valueStart } = field.value;
      if (name !== 'events') unknown.push(name);
      if (name === 'events' && startsArray(body, valueStart)) {
        events = await this.#scanEvents(valueStart, maxEvents);
        field = fields.next(events.end);
      } else {
        field = fields.next(await this.#skip(valueStart, BATCH_NESTING));
      }
    }
    expectEnd(body, field.value);
    if (events === null) throw invalidField('events', 'must be an array of events');
    if (unknown.length > 0) throw unknownFields(unknown);
    return events;
  }

  async #scanEvents(start: number, maxEvents: number): Promise<ScannedEvents> {
    const items: ScannedItem[] = [];
    let count = 0;
    const elements = walkArray(this.#body, start);
    let element = elements.next();
    while (!element.done) {
      const from = element.value;
      count += 1;
      if (count > maxEvents) {
        element = elements.next(await this.#skip(from, BATCH_NESTING));
        continue;
      }
      const { item, end } = await this.#scanItem(from);
      items.push({ item, bytes: end - from });
      element = elements.next(end);
    }
    return { items, count, end: element.value };
  }

  async #scanItem(start: number): Promise<{ readonly item: BatchItem; readonly end: number }> {
    if (!startsObject(this.#body, start)) return { item: null, end: await this.#skip(start, BATCH_NESTING) };
    try {
      const item = new Map<string, Span>();
      const fields = walkObject(this.#body, start, MAX_FIELDS);
      let field = fields.next();
      while (!field.done) {
        const { name, start: valueStart } = field.value;
        const end = await this.#skip(valueStart, this.#maxNesting);
        item.set(name, { start: valueStart, end });
        field = fields.next(end);
      }
      return { item, end: field.value };
    } catch (error) {
      if (!(error instanceof JsonDepthError || error instanceof JsonFieldsError)) throw error;
      this.#turnEndsAt = start + BYTES_PER_TURN;
      return { item: error, end: await this.#skip(start, BATCH_NESTING) };
    }
  }

  /** Returns the position after a value. */
  #skip(start: number, maxDepth: number): number | Promise<number> {
    const value = new ValueSkipper(this.#body, start, maxDepth);
    value.skipTo(this.#turnEndsAt);
    return value.end !== null && value.end < this.#turnEndsAt ? value.end : this.#goOn(value);
  }

  async #goOn(value: ValueSkipper): Promise<number> {
    for (;;) {
      await yieldToEventLoop();
      this.#turnEndsAt = Math.max(this.#turnEndsAt, value.end ?? 0) + BYTES_PER_TURN;
      if (value.end !== null) return value.end;
      value.skipTo(this.#turnEndsAt);
    }
  }
}
