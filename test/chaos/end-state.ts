/** Checks of the state after a run. */
import type { RegisteredEndpoint } from './endpoints.ts';
import type { Postgres, System } from './system.ts';
import { pairOf } from './verdict.ts';

export async function nothingWaits(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.query<{ waiting: boolean }>(
    'select exists (select from posthorn.queue) or exists (select from posthorn.outbox) as waiting',
  );
  return !row!.waiting;
}

/** A complaint for each delivery that ended twice: as delivered or skipped, and as dead. */
export async function endedTwice(postgres: Postgres): Promise<string[]> {
  const rows = await postgres.query<{ id: string; status: string; reason: string }>(
    'select d.id, d.status, l.reason from posthorn.deliveries d join posthorn.dead_letters l on l.id = d.id',
  );
  return rows.map(({ id, status, reason }) => `delivery ${id} ended as ${status} and as dead (${reason})`);
}

/** A complaint for each record of the accept topic that was not stored: no fault is a reason to reject one. */
export async function rejectedEvents(postgres: Postgres): Promise<string[]> {
  const rows = await postgres.query<{ id: string; reason: string }>(
    "select posthorn.public_id('evt', id) as id, reason from posthorn.kafka_records where state = 'rejected'",
  );
  return rows.map(({ id, reason }) => `event ${id} was accepted and set aside: ${reason}`);
}

export async function everyShardIsOwned(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.query<{ free: boolean }>(
    `select exists (select from posthorn.shards s where not exists
       (select from posthorn.workers w where w.id = s.owner and w.renewed_at > now() - interval '2 s')) as free`,
  );
  return !row!.free;
}

export async function deadLetters(
  system: System,
  endpoints: readonly RegisteredEndpoint[],
): Promise<Map<string, string>> {
  const names = new Map(endpoints.map(({ id, name }) => [id, name]));
  const dead = new Map<string, string>();
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page: {
      data: { event_id: string; endpoint_id: string; reason: string | null }[];
      next_cursor: string | null;
    } = await system.api('GET', `/v1/deliveries?status=dead&limit=250${query}`);
    for (const { event_id, endpoint_id, reason } of page.data) {
      if (reason !== null) dead.set(pairOf(event_id, names.get(endpoint_id) ?? endpoint_id), reason);
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return dead;
}
