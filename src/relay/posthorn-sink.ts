/**
 * Stores the events of a source in Posthorn, exactly once. A source delivers at least once: after a crash it returns the
 * same items again. The id of an event is computed from the source alone (`eventIdFromForeignId`), and the event store writes
 * an id once. So the relay needs no table of seen items, and two relays may read the same event.
 */
import type { CommittedEvent, NewEvent } from '../domain/event.ts';
import {
  eventIdFromForeignId,
  idPrefixes,
  isEventId,
  isUuidV7,
  parsePublicId,
  publicId,
} from '../domain/ids.ts';
import { invalidField, isProblem, Problem } from '../domain/problem.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import type { Pool } from '../postgres/database.ts';
import { recordRejected } from '../postgres/queries/relay-sources.ts';
import type { Log } from '../telemetry/log.ts';
import type { Incoming, Sink, SinkResult } from './sink.ts';

export interface PosthornSinkOptions {
  readonly source: string;
  readonly pool: Pool;
  readonly log: Log;
  /** Reads and validates a body as the API does. Throws a `Problem`. */
  readonly read: (body: Buffer) => { readonly event: NewEvent; readonly id: unknown };
  /** Returns one answer per event. A `Problem` with code "invalid" is final, any other error may be temporary. */
  readonly accept: (events: readonly CommittedEvent[]) => Promise<readonly (object | Error)[]>;
  /**
   * Resolves when the workers have been notified of the accepted events. The relay confirms the source only after that:
   * if it is killed before, it reads the items again and notifies again, so the workers need not wait for a sweep.
   */
  readonly waitUntilNotified: () => Promise<void>;
}

/** An event that causes this many failures is rejected. */
const MAX_FAILURES = 3;

export class PosthornSink implements Sink {
  readonly #options: PosthornSinkOptions;
  /** How many failures each event has caused, by event id. */
  #failures = new Map<string, number>();

  constructor(options: PosthornSinkOptions) {
    this.#options = options;
  }

  async accept(items: readonly Incoming[]): Promise<readonly SinkResult[]> {
    const results = new Array<SinkResult>(items.length);
    const events: CommittedEvent[] = [];
    const indexes: number[] = [];
    for (const [index, item] of items.entries()) {
      try {
        events.push(this.#read(item));
        indexes.push(index);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        results[index] = toRejected(error);
      }
    }
    const answers = events.length === 0 ? [] : await this.#options.accept(events);
    this.#throwTemporary(events, answers);
    for (const [order, answer] of answers.entries()) {
      results[indexes[order]!] =
        answer instanceof Error
          ? toRejected(answer)
          : { kind: 'accepted', eventId: publicId(idPrefixes.event, events[order]!.id) };
    }
    await Promise.all([this.#options.waitUntilNotified(), this.#record(items, results)]);
    return results;
  }

  /**
   * Throws an error that may be temporary, so that the relay retries the batch. The event causes the error if other
   * events of the batch were stored, or if a trigger or a limit of PostgreSQL rejects it: it is then rejected after a
   * few tries, because the events behind it must not wait forever. An error that fails every event, such as a missing
   * privilege, is no reason to reject them.
   */
  #throwTemporary(events: readonly CommittedEvent[], answers: readonly (object | Error)[]): void {
    const failures = new Map<string, number>();
    const areSomeStored = answers.some((answer) => !(answer instanceof Error));
    let temporary: Error | null = null;
    for (const [order, answer] of answers.entries()) {
      if (!(answer instanceof Error) || isProblem(answer, 'invalid')) continue;
      const { id } = events[order]!;
      const isOutage = isProblem(answer, 'unavailable') && storeFailureOf(answer.cause) !== 'timeout';
      const isCausedByEvent = !isOutage && (areSomeStored || isRaisedOrOverLimit(answer));
      const count = (this.#failures.get(id) ?? 0) + (isCausedByEvent ? 1 : 0);
      failures.set(id, count);
      if (count < MAX_FAILURES) temporary ??= answer;
    }
    this.#failures = failures;
    if (temporary !== null) throw temporary;
  }

  #read(item: Incoming): CommittedEvent {
    if (item.problem !== null) throw new Problem('invalid', item.problem);
    const { event, id } = this.#options.read(item.body);
    if (id !== undefined && !item.mayCarryId) throw invalidField('id', 'is not a field of this request');
    return { ...event, id: eventIdOf(item, id ?? null), outboxSeq: null };
  }

  async #record(items: readonly Incoming[], results: readonly SinkResult[]): Promise<void> {
    const rejected = items.flatMap(({ id, body }, index) => {
      const result = results[index]!;
      return result.kind === 'rejected' ? [{ id, body, problem: result.problem }] : [];
    });
    if (rejected.length === 0) return;
    const { pool, source, log } = this.#options;
    await recordRejected(pool, source, rejected);
    for (const { id, problem } of rejected)
      log.warn({ source, id, problem }, 'rejected an event of the source');
  }
}

/** The message may quote the event, which may contain characters that PostgreSQL's text does not take. */
function toRejected({ message }: Error): SinkResult {
  const problem = message.slice(0, MAX_PROBLEM_LENGTH).replaceAll('\0', '\ufffd').toWellFormed();
  return { kind: 'rejected', problem };
}
const MAX_PROBLEM_LENGTH = 2000;

/** SQLSTATE classes P0 (raised by a function) and 54 (a limit of the program). */
const isRaisedOrOverLimit = ({ cause }: Error): boolean =>
  /^(P0|54)/.test(String((cause as { code?: unknown } | undefined)?.code));

function eventIdOf({ id, createdAt }: Incoming, given: unknown): string {
  if (given !== null) {
    const eventId = typeof given === 'string' ? parsePublicId(idPrefixes.event, given) : null;
    if (eventId !== null && isEventId(eventId)) return eventId;
    const ownId = eventId ?? (typeof given === 'string' ? given.toLowerCase() : '');
    if (!isUuidV7(ownId))
      throw invalidField(
        'id',
        'must be a UUID of version 7 or an event id (evt_…), because both contain their time',
      );
    return eventIdFromForeignId(ownId, 0);
  }
  if (!isUuidV7(id) && !(createdAt >= 0 && createdAt < 2 ** 47))
    throw invalidField('created_at', 'must be a time');
  return eventIdFromForeignId(id, createdAt);
}
