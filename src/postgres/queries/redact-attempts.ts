/**
 * Redacts the values of custom headers in attempts that earlier versions recorded. The redaction walks through all attempts
 * once, in small batches: `attempts_redaction` has the position, and its row is deleted at the end. A batch replaces only
 * headers that are still as they were read. The redaction begins an hour after the last worker of an earlier version was
 * registered, because such a worker still records values. If one registers again, the redaction starts over.
 */
import type { Uuid } from '../../domain/ids.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import { parseHeaders } from '../sent-headers.ts';
import { hasEarlierWorkers } from './ownership.ts';

const REDACTED = '[redacted]';
/** Headers that Posthorn creates. They are not secret. Nor are those of events, which the caller adds. */
const OWN =
  /^(?:content-.*|user-agent|webhook-.*|posthorn-.*|x-webhook-.*|x-github-(?:event|delivery)|x-hub-signature-256.*|stripe-signature.*|x-idempotency-key)$/;

const FIRST = '00000000-0000-0000-0000-000000000000';

interface Position {
  readonly until: Date;
  readonly after_delivery: Uuid;
  readonly after_attempt: Uuid;
}

interface Row {
  readonly delivery_id: Uuid;
  readonly id: Uuid;
  readonly is_old: boolean;
  readonly request_headers: string;
  readonly event_headers: Readonly<Record<string, string>> | null;
}

/** Redacts up to `max` attempts. Returns false if none is left. */
export function redactOldAttempts(pool: Pool, max: number): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    if (await hasEarlierWorkers(client)) {
      await client.query(
        `update posthorn.attempts_redaction
            set until = greatest(until, now() + interval '1 hour'), after_delivery = $1, after_attempt = $1`,
        [FIRST],
      );
      return false;
    }
    const { rows } = await client.query<Position>(
      'select until, after_delivery, after_attempt from posthorn.attempts_redaction where until < now() for update',
    );
    const position = rows[0];
    if (position === undefined) return false;
    const attempts = await readAttempts(client, position, max);
    await redact(client, attempts);
    const last = attempts.at(-1);
    if (last !== undefined && attempts.length === max) {
      await client.query('update posthorn.attempts_redaction set after_delivery = $1, after_attempt = $2', [
        last.delivery_id,
        last.id,
      ]);
      return true;
    }
    await client.query('delete from posthorn.attempts_redaction');
    return false;
  });
}

/** Attempts that began before this time may contain values of custom headers. Null: all are redacted. */
export async function readUnredactedUntil(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ until: Date }>('select until from posthorn.attempts_redaction');
  return rows[0]?.until.getTime() ?? null;
}

async function readAttempts(client: Client, position: Position, max: number): Promise<Row[]> {
  const { rows } = await client.query<Row>(
    `select a.delivery_id, a.id, a.started_at < $3 as is_old, a.request_headers, e.options -> 'headers' as event_headers
       from (select * from posthorn.attempts
              where (delivery_id, id) > ($1, $2) order by delivery_id, id limit $4) a
       left join posthorn.events e on e.id = posthorn.event_of_delivery(a.delivery_id)
      order by a.delivery_id, a.id`,
    [position.after_delivery, position.after_attempt, position.until, max],
  );
  return rows;
}

async function redact(client: Client, rows: readonly Row[]): Promise<void> {
  const changed = rows.flatMap((row) => {
    const redacted = row.is_old ? redactStoredHeaders(row) : null;
    return redacted === null ? [] : { ...row, redacted };
  });
  if (changed.length === 0) return;
  await client.query(
    `update posthorn.attempts a set request_headers = n.redacted
       from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) as n (delivery_id, id, was, redacted)
      where a.delivery_id = n.delivery_id and a.id = n.id and a.request_headers = n.was`,
    [
      changed.map(({ delivery_id }) => delivery_id),
      changed.map(({ id }) => id),
      changed.map(({ request_headers }) => request_headers),
      changed.map(({ redacted }) => redacted),
    ],
  );
}

/** Returns null if there is nothing to redact. */
export function redactStoredHeaders(row: Pick<Row, 'request_headers' | 'event_headers'>): string | null {
  const headers = parseHeaders(row.request_headers);
  const ofEvent = new Set(Object.keys(row.event_headers ?? {}).map((name) => name.toLowerCase()));
  const names = Object.keys(headers).filter((name) => {
    const lower = name.toLowerCase();
    return !OWN.test(lower) && !ofEvent.has(lower) && headers[name] !== REDACTED;
  });
  if (names.length === 0) return null;
  return JSON.stringify({ ...headers, ...Object.fromEntries(names.map((name) => [name, REDACTED])) });
}
