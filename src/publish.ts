/** Turns an event of the library into the body of `POST /v1/events`, so that one reader validates both. */
import { Problem } from './domain/problem.ts';
import type { OutboxEvent } from './outbox/index.ts';

export type NewEvent = OutboxEvent;

export function toEventJson(event: NewEvent): Buffer {
  const { type, tenant, idempotencyKey, channels, endpointIds, deliverAt, headers, schemaVersion } = event;
  const fields = JSON.stringify({
    type,
    tenant: tenant ?? undefined,
    idempotency_key: idempotencyKey ?? undefined,
    channels: channels ?? undefined,
    endpoint_ids: endpointIds ?? undefined,
    deliver_at: deliverAt ?? undefined,
    headers: headers ?? undefined,
    schema_version: schemaVersion ?? undefined,
  });
  const data = dataOf(event);
  if (data === undefined) return Buffer.from(fields);
  return Buffer.from(fields === '{}' ? `{"data":${data}}` : `${fields.slice(0, -1)},"data":${data}}`);
}

function dataOf(event: NewEvent): string | undefined {
  if (event.json === undefined) return JSON.stringify(event.data);
  try {
    // The text is inserted between other fields, so it must be one JSON value and cannot add fields.
    JSON.parse(event.json);
  } catch (error) {
    throw new Problem('invalid', `json: is not JSON (${(error as Error).message})`, {
      errors: [{ path: 'json', message: 'is not JSON' }],
    });
  }
  return event.json;
}
