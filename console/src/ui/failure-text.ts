/** Error classes and reasons of the API as text for people. */
import type { Attempt } from '@posthorn/client';

type ErrorClass = NonNullable<Attempt['error']>['class'];

const ERRORS: Record<ErrorClass, string> = {
  dns_failed: 'The host name does not resolve',
  egress_forbidden: 'The address is not allowed',
  connect_refused: 'The connection was refused',
  connect_timeout: 'The connection timed out',
  connection_failed: 'The connection failed',
  connection_reset: 'The connection was reset',
  tls_expired: 'The certificate has expired',
  tls_name_mismatch: 'The certificate is for another host',
  tls_untrusted: 'The certificate is not trusted',
  tls_failed: 'The TLS handshake failed',
  timeout: 'The response timed out',
  response_invalid: 'The response was not valid HTTP',
  response_headers_too_large: 'The response headers are too large',
  http_1xx: 'The receiver sent only an informational response',
  http_3xx: 'The receiver redirects',
  redirect_failed: 'The redirect could not be followed',
  http_4xx: 'The receiver rejected the request',
  http_408: 'The receiver timed out',
  http_410: 'The receiver is gone',
  http_429: 'The receiver asks for fewer requests',
  http_5xx: 'The receiver failed',
  oauth_failed: 'The token endpoint gave no access token',
  oauth_rejected: 'The receiver refused the access token',
  mail_failed: 'The mail server did not take the message',
  mail_rejected: 'The mail server refused the message',
  conversion_failed: 'The payload could not be converted',
  batch_event_failed: 'The receiver could not take this event of a batch',
  batch_result_invalid: 'The answer to the batch is not valid',
  proxy_failed: 'The egress proxy failed',
  internal: 'Posthorn failed to make the request',
};

export const describeError = (errorClass: string): string =>
  (ERRORS as Record<string, string>)[errorClass] ?? errorClass;

/** Removes the title from the start of a hint, because the title is shown above it. */
export function stripTitle(title: string, hint: string | null): string | null {
  return hint?.startsWith(`${title}. `) ? hint.slice(title.length + 2) : hint;
}

const REASONS: Record<string, string> = {
  exhausted: 'every attempt failed',
  rejected: 'the receiver rejected the request',
  gone: 'the receiver is gone (410)',
  expired: 'it reached its maximum age',
  worker_crash: 'sending it crashed a worker',
  endpoint_disabled: 'the endpoint was disabled',
  endpoint_deleted: 'the endpoint was deleted',
  debounced: 'another event with the same key was sent instead',
  retention: 'its retention ended',
  expunged: 'its payload was deleted',
};

export const describeReason = (reason: string | null): string =>
  reason === null ? '' : (REASONS[reason] ?? reason);

/** Why a delivery was discarded. If somebody discarded it, the API returns the id of the key or person as the reason. */
export const describeDiscard = (reason: string | null): string =>
  reason === null ? '' : (REASONS[reason] ?? `discarded by ${reason}`);

/** Why a delivery is dead: its last error, and the reason why it is not retried unless the error implies it. */
export function describeDeath(lastError: string | null, reason: string | null): string {
  const error = lastError === null ? '' : describeError(lastError);
  if (error === '') return describeReason(reason);
  if (reason === null || reason === 'rejected' || reason === 'gone') return error;
  return `${error} · ${describeReason(reason)}`;
}
