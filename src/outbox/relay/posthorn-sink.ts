/**
 * Into Posthorn, exactly once. A source delivers at least once: after a crash it gives the same again. Every event gets
 * an id that follows from the source alone (`eventIdOfForeign`), and the accept statement stores an id once. So no
 * table of what was seen is needed, none can expire, and two relays, a poll and the log may bring the same event.
 */
import type { CommittedEvent, NewEvent } from '../../domain/event.ts';
import { eventIdOfForeign, hasTimeOfItsOwn, idPrefixes, parsePublicId, publicId } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import type { Pool } from '../../postgres/database.ts';
import { recordRejected } from '../../postgres/queries/relay-sources.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Fate, Incoming, Sink } from './sink.ts';

export interface PosthornSinkOptions {
  readonly source: string;
  readonly pool: Pool;
  readonly log: Log;
  /** Reads and checks as the API does; throws a `Problem`. */
  readonly read: (body: Buffer) => { readonly event: NewEvent; readonly id: unknown };
  /** A `Problem` with code "invalid" is final, every other error may pass. */
  readonly accept: (events: readonly CommittedEvent[]) => Promise<readonly (object | Error)[]>;
  /**
   * Resolves when the workers have been told of what was accepted. Before the source hears that it is done with them: a
   * relay that is killed in between brings them again, and the workers need not wait for a sweep.
   */
  readonly told: () => Promise<void>;
}

/** So often may an event fail for what looks like its own fault before it is put aside. */
const FAILURES_TO_REJECT = 3;

export class PosthornSink implements Sink {
  readonly #options: PosthornSinkOptions;
  /** By event id: how often that was. */
  #failures = new Map<string, number>();

  constructor(options: PosthornSinkOptions) {
    this.#options = options;
  }

  async accept(items: readonly Incoming[]): Promise<readonly Fate[]> {
    const fates = new Array<Fate>(items.length);
    const events: CommittedEvent[] = [];
    const places: number[] = [];
    for (const [index, item] of items.entries()) {
      try {
        events.push(this.#read(item));
        places.push(index);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        fates[index] = rejected(error);
      }
    }
    const answers = events.length === 0 ? [] : await this.#options.accept(events);
    this.#throwIfAnyMayPass(events, answers);
    for (const [order, answer] of answers.entries()) {
      fates[places[order]!] =
        answer instanceof Error
          ? rejected(answer)
          : { kind: 'accepted', eventId: publicId(idPrefixes.event, events[order]!.id) };
    }
    await Promise.all([this.#options.told(), this.#record(items, fates)]);
    return fates;
  }

  /**
   * An error may be Posthorn's trouble or the event's own. It is the event's if others of its batch are stored and it is
   * not, or if somebody's trigger refuses it: then nothing waits for ever behind it. A right that is missing, say,
   * would be everybody's trouble, and no reason to put all of them aside.
   */
  #throwIfAnyMayPass(events: readonly CommittedEvent[], answers: readonly (object | Error)[]): void {
    const failures = new Map<string, number>();
    const othersWent = answers.some((answer) => !(answer instanceof Error));
    let mayPass: Error | null = null;
    for (const [order, answer] of answers.entries()) {
      if (!(answer instanceof Error) || isFinal(answer)) continue;
      const { id } = events[order]!;
      const isItsOwn = !isAway(answer) && (othersWent || isRaisedOrTooMuch(answer));
      const count = (this.#failures.get(id) ?? 0) + (isItsOwn ? 1 : 0);
      failures.set(id, count);
      if (count < FAILURES_TO_REJECT) mayPass ??= answer;
    }
    this.#failures = failures;
    if (mayPass !== null) throw mayPass;
  }

  #read(item: Incoming): CommittedEvent {
    if (item.problem !== null) throw new Problem('invalid', item.problem);
    const { event, id } = this.#options.read(item.body);
    if (id !== undefined && !item.mayCarryId) throw invalidField('id', 'is not a field of this request');
    return { ...event, id: eventIdOf(item, id ?? null), outboxSeq: null };
  }

  async #record(items: readonly Incoming[], fates: readonly Fate[]): Promise<void> {
    const refused = items.flatMap(({ id, body }, index) => {
      const fate = fates[index]!;
      return fate.kind === 'rejected' ? [{ id, body, problem: fate.problem }] : [];
    });
    if (refused.length === 0) return;
    const { pool, source, log } = this.#options;
    await recordRejected(pool, source, refused);
    for (const { id, problem } of refused)
      log.warn({ source, id, problem }, 'refused an event of the outbox');
  }
}

/** The message may quote the event, and an event may have what no text in PostgreSQL can: that must not block us. */
function rejected({ message }: Error): Fate {
  const problem = message.slice(0, LONGEST_PROBLEM).replaceAll('\0', '\ufffd').toWellFormed();
  return { kind: 'rejected', problem };
}
const LONGEST_PROBLEM = 2000;

const isAway = (error: Error): boolean => error instanceof Problem && error.code === 'unavailable';
/** SQLSTATE classes P0 (raised by a function) and 54 (a limit of the program). */
const isRaisedOrTooMuch = (error: Error): boolean =>
  /^(P0|54)/.test(String((error as { code?: unknown }).code));
const isFinal = (error: Error): boolean => error instanceof Problem && error.code === 'invalid';

function eventIdOf({ id, madeAt }: Incoming, given: unknown): string {
  if (given !== null) {
    const own =
      typeof given === 'string' ? (parsePublicId(idPrefixes.event, given) ?? given.toLowerCase()) : '';
    if (!hasTimeOfItsOwn(own))
      throw invalidField('id', 'must be a UUID of version 7 or an event id (evt_…): both carry their time');
    return eventIdOfForeign(own, 0);
  }
  if (!hasTimeOfItsOwn(id) && !(madeAt >= 0 && madeAt < 2 ** 47))
    throw invalidField('created_at', 'must be a time');
  return eventIdOfForeign(id, madeAt);
}
