import { readConversionNote } from '../../domain/conversion-header.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { eventIdOfDelivery, idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import { type ErrorClass, errorClasses } from '../../domain/outcome.ts';
import { maxAttempts } from '../../domain/retry.ts';
import { type Caller, showRecordedName } from '../../manage/caller.ts';
import type { AttemptView, DeliveryView } from '../../postgres/queries/deliveries.ts';
import { batchOfRequest } from '../../postgres/sent-headers.ts';
import type { Shown } from '../openapi/describe.ts';
import type { AttemptSchema, DeliverySchema, WaitingReason } from './schema.ts';

/** `endpoint` is undefined if it was deleted and has no deliveries left to send. */
export function showDelivery(
  view: DeliveryView,
  endpoint: Endpoint | undefined,
  reader: Caller,
): Shown<typeof DeliverySchema> {
  const isWaiting = view.status === 'pending' || view.status === 'retrying';
  return {
    id: publicId(idPrefixes.delivery, view.id),
    event_id: publicId(idPrefixes.event, eventIdOfDelivery(view.id)),
    endpoint_id: publicId(idPrefixes.endpoint, view.endpoint_id),
    tenant: view.tenant,
    event_type: view.event_type,
    status: view.status,
    attempts: view.attempts,
    max_attempts: endpoint === undefined ? null : maxAttempts(endpoint.retry),
    next_attempt_at: isWaiting ? view.due_at : null,
    last_status_code: view.last_status_code,
    last_error: view.last_error_class,
    waiting_reason: isWaiting ? waitingReason(view, endpoint) : null,
    // The reason of a discarded delivery is the name of who discarded it.
    reason: view.reason && showRecordedName(view.reason, reader),
    discard: view.discard && {
      why: view.discard.why,
      reason: view.discard.reason,
      dead_at: new Date(view.discard.dead_at),
    },
    batch_id: view.batch_id,
    debounced_by: view.debounced_by === null ? null : publicId(idPrefixes.delivery, view.debounced_by),
    replaying: view.replaying,
    replays: view.replays,
    created_at: new Date(timeOfId(view.id)),
    delivered_at: view.status === 'delivered' ? view.finished_at : null,
    dead_at: view.status === 'dead' ? view.finished_at : null,
  };
}

function waitingReason(view: DeliveryView, endpoint: Endpoint | undefined): WaitingReason | null {
  if (endpoint?.paused) return 'paused';
  if (view.waits_for !== null) return view.waits_for;
  return view.due_at === null ? null : 'schedule';
}

export function showAttempt(attempt: AttemptView): Shown<typeof AttemptSchema> {
  const errorClass = attempt.error_class as ErrorClass | null;
  return {
    delivery_id: publicId(idPrefixes.delivery, attempt.delivery_id),
    number: attempt.number,
    started_at: attempt.started_at,
    duration_ms: attempt.duration_ms,
    timing: {
      dns_ms: attempt.dns_ms,
      connect_ms: attempt.connect_ms,
      tls_ms: attempt.tls_ms,
      first_byte_ms: attempt.first_byte_ms,
    },
    status_code: attempt.status_code,
    outcome: attempt.outcome,
    error: errorClass && {
      class: errorClass,
      message: attempt.error_message,
      hint: errorClasses[errorClass] ?? null,
    },
    conversion: readConversionNote(attempt.request_headers),
    url: attempt.url,
    request_headers: attempt.request_headers,
    response_headers: attempt.response_headers,
    response_body: attempt.response_body === null ? null : attempt.response_body.toString('utf8'),
    response_truncated: attempt.response_truncated,
    trigger: attempt.trigger,
    batch_id: batchOfRequest(attempt.request_headers),
    worker: attempt.worker,
  };
}
