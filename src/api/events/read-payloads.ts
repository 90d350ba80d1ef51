/** Requests that read many payloads, such as searches: limits how many run at once, and loads payloads in pieces. */
import type { FastifyReply } from 'fastify';
import { Gate } from '../../domain/gate.ts';
import { Problem } from '../../domain/problem.ts';
import type { Pool } from '../../postgres/database.ts';
import type { EventWithData } from '../../postgres/queries/events.ts';
import { loadPayloads, type SizedEvent } from '../../postgres/queries/search-events.ts';

/** Per process. Further requests of this kind wait, so that connections and memory are left for all others. */
const gate = new Gate({ maxRunning: 2, maxWaiting: 100, perGroup: { maxRunning: 1, maxWaiting: 4 } });

/** What the routes document about `rate_limited`. */
export const TOO_MANY_READERS =
  'The tenant already has one request that reads payloads and four that wait, or the key makes too many requests.';

/**
 * Runs `work` when it is its turn among the requests that read payloads. The tenant is the one whose events are read; null:
 * all tenants. Throws `rate_limited` if too many requests wait, and if the client disconnects while this one waits.
 */
export async function takeTurn<T extends object>(
  tenant: string | null,
  reply: FastifyReply,
  work: () => Promise<T>,
): Promise<T> {
  const result = await gate.run(work, { group: tenant ?? '', signal: disconnectOf(reply) });
  if (result !== null) return result;
  throw new Problem('rate_limited', 'Too many requests that read payloads wait already. Try again shortly.', {
    retryAfterSeconds: 1,
  });
}

/** Aborts when the client disconnects. The signal of a Fastify request aborts as soon as its body was read. */
function disconnectOf({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  if (raw.destroyed) controller.abort();
  else raw.once('close', () => controller.abort());
  return controller.signal;
}

/** A statement loads at most this much data, or one event. */
const MAX_BYTES_PER_STATEMENT = 8_000_000;
const MAX_EVENTS_PER_STATEMENT = 500;
const BYTES_PER_TURN_OF_THE_EVENT_LOOP = 1_000_000;

/** Loads the events with their data, in the given order. Lets other requests proceed after each megabyte. */
export async function* readPayloads(
  pool: Pool,
  events: readonly SizedEvent[],
): AsyncGenerator<EventWithData, void> {
  let bytes = 0;
  for (const piece of splitBySize(events)) {
    for (const event of await loadPayloads(pool, piece)) {
      yield event;
      bytes += event.data?.length ?? 0;
      if (bytes < BYTES_PER_TURN_OF_THE_EVENT_LOOP) continue;
      bytes = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

function* splitBySize(events: readonly SizedEvent[]): Generator<SizedEvent[], void> {
  let piece: SizedEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    const isFull = bytes + event.bytes > MAX_BYTES_PER_STATEMENT || piece.length >= MAX_EVENTS_PER_STATEMENT;
    if (isFull && piece.length > 0) {
      yield piece;
      piece = [];
      bytes = 0;
    }
    piece.push(event);
    bytes += event.bytes;
  }
  if (piece.length > 0) yield piece;
}
