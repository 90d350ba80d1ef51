/**
 * Accepts events that their producer has already committed in its own transaction: outbox rows, rows that a relay reads, and
 * Kafka records. They are stored like requests, but it is too late to reject them for their idempotency key:
 *
 *   new id                        stored and delivered
 *   id stored before              nothing is written
 *   key of another event,         stored without deliveries and with `duplicate_of`, so that the id the producer
 *     same type and data            already has can be looked up and explains why nothing was sent
 *   key of another event,         stored without the key and delivered, with `key_conflict_with`: reusing a key is a
 *     other type or data            mistake, but losing a committed event would be worse
 *   payload breaks its schema     stored and delivered, with `schema_errors`
 *   refused by the database       an error, so that the caller can reject the event
 */
import type { Clock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import { timeOfId } from '../domain/ids.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { BatchWriter } from './batch-writer.ts';
import { findIdProblem, isFromFuture } from './id-times.ts';
import { type AcceptAnswer, fingerprintOf, type PendingEvent } from './pending-event.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { SchemaFailures } from './schema-failures.ts';

export interface CommittedEventsOptions {
  readonly eventStore: Pick<EventStore, 'now'>;
  readonly writer: Pick<BatchWriter, 'write'>;
  readonly clock: Clock;
  /** Undefined: payloads are not checked. */
  readonly schemas?: { readonly check: SchemaCheck; readonly failures: SchemaFailures } | undefined;
}

export class CommittedEvents {
  readonly #options: CommittedEventsOptions;

  constructor(options: CommittedEventsOptions) {
    this.#options = options;
  }

  /**
   * Stores committed events as one batch, in this order. All come from the same place: the outbox, a relay, one Kafka
   * partition, or the Kafka records that were set aside. Returns one answer per event: a `Problem` with code "invalid" is
   * final, after any other error the caller may retry.
   */
  async accept(events: readonly CommittedEvent[]): Promise<(AcceptAnswer | Error)[]> {
    const { eventStore, writer, clock, schemas } = this.#options;
    const answers = new Array<AcceptAnswer | Error>(events.length);
    // Our own clock may have jumped: use the clock of the store before rejecting an event for its time.
    const needsStoreClock = events.some(({ id }) => isFromFuture(id, clock.now()));
    const now = needsStoreClock ? await eventStore.now() : clock.now();
    const batch: PendingEvent[] = [];
    for (const [index, published] of events.entries()) {
      // After the clock stepped back, ids from before the step lie in the future. Such events are stored if a partition covers their ids.
      const problem = findIdProblem(published, clock.isSteady === false ? timeOfId(published.id) : now);
      if (problem !== null) {
        answers[index] = problem;
        continue;
      }
      const event = (await schemas?.check.check(published, { canRefuse: false })) ?? published;
      batch.push({
        event,
        id: event.id,
        fingerprint: fingerprintOf(event),
        receivedAt: clock.monotonic(),
        committed: {
          outboxSeq: event.outboxSeq,
          lostKey: null,
          isOutcomeUnknown: false,
          record: event.record,
          isFromAcceptLog: event.isFromAcceptLog,
        },
        resolve: (answer) => {
          answers[index] = answer;
          if (event.schemaErrors !== undefined) schemas?.failures.onFlagged(event, event.id);
        },
        reject: (error) => {
          answers[index] = error instanceof Error ? error : new Error(String(error));
        },
      });
    }
    if (batch.length > 0) await writer.write(batch, { mayBeStored: true });
    return answers;
  }
}
