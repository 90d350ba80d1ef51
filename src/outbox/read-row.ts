import { type CommittedEvent, isEventType, isTenantId } from '../domain/event.ts';
import type { OutboxRow } from '../ports/outbox-store.ts';

/**
 * Returns the event of an outbox row, or what is wrong with the row. `posthorn.publish` validates everything, but a row
 * that was inserted by hand may contain anything, and must not fail the rows that are stored together with it.
 */
export function readRow(row: OutboxRow): CommittedEvent | string {
  if (!isTenantId(row.tenant)) return 'tenant: is not a tenant id';
  if (!isEventType(row.type)) return 'type: is not an event type';
  const options = row.options ?? {};
  if (typeof options !== 'object' || Array.isArray(options)) return 'options: is not an object';
  const {
    channels = [],
    endpoint_ids = null,
    deliver_at = null,
    headers = null,
    schema_version = null,
  } = options;
  if (!areTexts(channels)) return 'options.channels: is not an array of texts';
  if (endpoint_ids !== null && !areTexts(endpoint_ids)) return 'options.endpoint_ids: is not an array of ids';
  if (deliver_at !== null && (typeof deliver_at !== 'number' || !Number.isFinite(deliver_at)))
    return 'options.deliver_at: is not a number';
  if (headers !== null && !isTextRecord(headers)) return 'options.headers: is not an object of texts';
  if (schema_version !== null && !isText(schema_version)) return 'options.schema_version: is not a text';
  return {
    id: row.id,
    outboxSeq: row.seq,
    tenant: row.tenant,
    type: row.type,
    data: row.data,
    idempotencyKey: row.idempotencyKey,
    schemaVersion: schema_version,
    channels,
    endpointIds: endpoint_ids,
    deliverAt: deliver_at,
    headers,
  };
}

const isText = (value: unknown): value is string => typeof value === 'string';

const areTexts = (values: unknown): values is readonly string[] =>
  Array.isArray(values) && values.every(isText);

const isTextRecord = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && areTexts(Object.values(value));
