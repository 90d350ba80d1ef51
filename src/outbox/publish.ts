/**
 * `posthorn/outbox`: publishes an event in the caller's own transaction. The event is published if, and only if, that
 * transaction commits. This module calls `posthorn.publish` through the caller's handle and imports no driver.
 *
 * @example
 * import { publish } from 'posthorn/outbox';
 *
 * await db.transaction(async (tx) => {
 *   await tx.insert(orders).values(order);
 *   await publish({ type: 'order.created', tenant: 'acme', data: order }, { tx });
 * });
 */
import { runOn, type Transaction } from './transaction-handles.ts';

export type {
  DrizzleTransaction,
  KyselyTransaction,
  PgClient,
  PostgresJsTransaction,
  PrismaTransaction,
  Transaction,
} from './transaction-handles.ts';

interface EventFields {
  /** Dot-separated segments, such as `order.created`. */
  readonly type: string;
  /** The tenant of the event. Absent: `default`. */
  readonly tenant?: string | null | undefined;
  /** Publishing twice with one key makes one event: the second call returns the id of the first. */
  readonly idempotencyKey?: string | null | undefined;
  readonly channels?: readonly string[] | null | undefined;
  /** Only these endpoints (`ep_…`). */
  readonly endpointIds?: readonly string[] | null | undefined;
  readonly deliverAt?: Date | string | null | undefined;
  readonly headers?: Readonly<Record<string, string>> | null | undefined;
  readonly schemaVersion?: string | null | undefined;
}

/** Either `data`, which is serialized, or `json`, which is JSON text and reaches the receivers unchanged. */
export type OutboxEvent = EventFields &
  (
    | { readonly data: unknown; readonly json?: undefined }
    | { readonly json: string; readonly data?: undefined }
  );

// Every parameter is text and is cast here, because drivers serialize arrays, times and JSON differently.
const PUBLISH = `select posthorn.publish(
  type => $1::text, data => $2::text::json, tenant => $3::text, idempotency_key => $4::text,
  channels => $5::text::text[], endpoint_ids => $6::text::text[], deliver_at => $7::text::timestamptz,
  headers => $8::text::json, schema_version => $9::text) as id`;

/** Returns the event's id (`evt_…`). Throws PostgreSQL's error if the event is invalid; the transaction has then failed. */
export async function publish(event: OutboxEvent, { tx }: { tx: Transaction }): Promise<string> {
  const rows = await runOn(tx, PUBLISH, [
    event.type,
    jsonOf(event),
    event.tenant ?? null,
    event.idempotencyKey ?? null,
    arrayLiteral(event.channels),
    arrayLiteral(event.endpointIds),
    event.deliverAt instanceof Date ? event.deliverAt.toISOString() : (event.deliverAt ?? null),
    event.headers ? JSON.stringify(event.headers) : null,
    event.schemaVersion ?? null,
  ]);
  const id = (rows[0] as { id?: unknown } | undefined)?.id;
  if (typeof id !== 'string') throw new TypeError('publish: the transaction returned no id');
  return id;
}

function jsonOf(event: OutboxEvent): string {
  if (typeof event.json === 'string') {
    if (event.data !== undefined) throw new TypeError('publish: give either data or json, not both');
    return event.json;
  }
  const text: string | undefined = JSON.stringify(event.data);
  if (text === undefined)
    throw new TypeError('publish: data is required and must be something JSON can express');
  return text;
}

/** Formats a PostgreSQL array. */
function arrayLiteral(texts: readonly string[] | null | undefined): string | null {
  if (texts === null || texts === undefined) return null;
  return `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
