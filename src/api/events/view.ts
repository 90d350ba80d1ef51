import { idPrefixes, publicId, timeOfId, type Uuid } from '../../domain/ids.ts';
import type { AcceptAnswer } from '../../ingest/index.ts';
import { type Caller, showRecordedName } from '../../manage/caller.ts';
import type { EventOutcome } from '../../postgres/queries/event-outcomes.ts';
import type { EventView } from '../../postgres/queries/events.ts';
import type { Shown } from '../openapi/describe.ts';
import type { AcceptedEvent } from './publish-schema.ts';
import type { EventSchema } from './schema.ts';

export function showEvent(
  event: EventView,
  outcome: EventOutcome | null,
  reader: Caller,
): Shown<typeof EventSchema> {
  const { options } = event;
  const expungedBy = options?.expunged_by;
  return {
    id: publicId(idPrefixes.event, event.id),
    type: event.type,
    tenant: event.tenant,
    created_at: new Date(timeOfId(event.id)),
    deliveries: event.deliveries,
    outcome,
    skipped: options?.skipped ?? 0,
    unmatched_reason: options?.unmatched_reason ?? null,
    idempotency_key: event.idempotency_key,
    schema_version: options?.schema_version ?? null,
    schema_errors: options?.schema_errors ?? [],
    channels: options?.channels ?? [],
    endpoint_ids: options?.endpoint_ids?.map((id) => publicId(idPrefixes.endpoint, id)) ?? null,
    deliver_at: options?.deliver_at === undefined ? null : new Date(options.deliver_at),
    headers: options?.headers ?? {},
    duplicate_of: showEventId(options?.duplicate_of),
    key_conflict_with: showEventId(options?.key_conflict_with),
    expunged_at: options?.expunged_at === undefined ? null : new Date(options.expunged_at),
    expunged_by: expungedBy === undefined ? null : showRecordedName(expungedBy, reader),
  };
}

const showEventId = (id: Uuid | undefined): string | null =>
  id === undefined ? null : publicId(idPrefixes.event, id);

export function showAcceptAnswer(answer: AcceptAnswer): Shown<typeof AcceptedEvent> {
  return {
    id: publicId(idPrefixes.event, answer.id),
    type: answer.type,
    tenant: answer.tenant,
    created_at: new Date(answer.createdAt),
    deliveries: answer.deliveries,
    unmatched_reason: answer.unmatchedReason,
    duplicate: answer.duplicate,
  };
}
