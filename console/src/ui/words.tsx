/** States and errors in plain words. */
import type { Circuit, Delivery, DeliveryStatus, Endpoint } from '../api/types.ts';
import { Badge, type Tone } from './basics.tsx';
import { Countdown } from './time.tsx';

const STATUS: Record<DeliveryStatus, readonly [string, Tone]> = {
  pending: ['Pending', 'info'],
  retrying: ['Retrying', 'warn'],
  delivered: ['Delivered', 'good'],
  dead: ['Dead', 'bad'],
  discarded: ['Discarded', 'mute'],
  skipped: ['Skipped', 'mute'],
};

export const deliveryStatuses = Object.keys(STATUS) as DeliveryStatus[];
export const statusName = (status: DeliveryStatus): string => STATUS[status]?.[0] ?? status;

export function StatusBadge({ status }: { status: DeliveryStatus }) {
  const [name, tone] = STATUS[status] ?? [status, 'mute'];
  return <Badge tone={tone}>{name}</Badge>;
}

export function CodeBadge({ code }: { code: number | null }) {
  if (code === null) return <Badge tone="bad">no answer</Badge>;
  const tone = code < 300 ? 'good' : code >= 500 || code < 200 ? 'bad' : 'warn';
  return (
    <Badge tone={tone} code>
      {code}
    </Badge>
  );
}

const ERRORS: Record<string, string> = {
  dns_failed: 'The host name does not resolve',
  egress_forbidden: 'The address is not allowed',
  connect_refused: 'The connection was refused',
  connect_timeout: 'No connection in time',
  connection_failed: 'The connection failed',
  connection_reset: 'The connection was cut',
  tls_expired: 'The certificate has expired',
  tls_name_mismatch: 'The certificate is for another host',
  tls_untrusted: 'The certificate is not trusted',
  tls_failed: 'The TLS handshake failed',
  timeout: 'No complete answer in time',
  response_invalid: 'The answer was not valid HTTP',
  response_headers_too_large: 'The response headers are too large',
  http_1xx: 'Only an informational answer',
  http_3xx: 'The receiver redirects',
  redirect_failed: 'The redirect could not be followed',
  http_4xx: 'The receiver rejected it',
  http_408: 'The receiver timed out',
  http_410: 'The receiver is gone',
  http_429: 'The receiver asks for fewer requests',
  http_5xx: 'The receiver failed',
  auth_failed: 'No access token for the receiver',
  proxy_failed: 'The egress proxy failed',
  internal: 'Posthorn failed to send it',
};

export const errorName = (errorClass: string): string => ERRORS[errorClass] ?? errorClass;

/** What to do about an error, below its name: the same words are not said again. */
export function hintAfter(title: string, hint: string | null): string | null {
  return hint?.startsWith(`${title}. `) ? hint.slice(title.length + 2) : hint;
}

const REASONS: Record<string, string> = {
  exhausted: 'every attempt failed',
  rejected: 'the receiver rejected it',
  gone: 'the receiver is gone (410)',
  expired: 'it grew too old',
  worker_crash: 'sending it crashed a worker',
  endpoint_disabled: 'the endpoint was disabled',
  endpoint_deleted: 'the endpoint was deleted',
  debounced: 'a later event replaced it',
};

export const reasonName = (reason: string | null): string =>
  reason === null ? '' : (REASONS[reason] ?? reason);

/** Why a delivery is dead: what went wrong last, and why that was the end. */
export function whyDead(lastError: string | null, reason: string | null): string {
  const error = lastError === null ? '' : errorName(lastError);
  if (error === '') return reasonName(reason);
  // They would say the same twice.
  if (reason === null || reason === 'rejected' || reason === 'gone') return error;
  return `${error} · ${reasonName(reason)}`;
}

const WAITING: Record<string, string> = {
  circuit_open: 'the circuit is open',
  rate_limited: 'the rate limit of the endpoint',
  paused: 'the endpoint is paused',
  ordering: 'an earlier one goes first',
};

/** "Retry in 12 s", "Waits: the endpoint is paused". */
export function WaitingFor({ delivery }: { delivery: Delivery }) {
  const { waiting_reason: why, next_attempt_at: at, attempts } = delivery;
  const because = why === null ? undefined : WAITING[why];
  return (
    <span>
      {because !== undefined && `Waits: ${because}`}
      {because !== undefined && at !== null && why === 'circuit_open' && ' · '}
      {at !== null && why !== 'paused' && why !== 'rate_limited' && (
        <>
          {because === undefined || why === 'circuit_open'
            ? attempts === 0
              ? 'First attempt '
              : 'Next attempt '
            : ' '}
          <Countdown at={at} />
        </>
      )}
      {at === null && because === undefined && 'Due now'}
    </span>
  );
}

export function CircuitBadge({ circuit }: { circuit: Circuit }) {
  if (circuit === 'closed') return <Badge tone="good">Closed</Badge>;
  return circuit === 'open' ? <Badge tone="bad">Open</Badge> : <Badge tone="warn">Probing</Badge>;
}

const DISABLED: Record<string, string> = {
  manual: 'by hand',
  gone: 'it answered 410 Gone',
  failing: 'it only failed for days',
  dead_letters: 'too many deliveries died',
};

/** The one thing to know about an endpoint. */
export function endpointState(
  endpoint: Pick<Endpoint, 'enabled' | 'paused' | 'disabled_reason' | 'health'>,
): readonly [string, Tone, string] {
  const { health } = endpoint;
  if (!endpoint.enabled) {
    const reason = endpoint.disabled_reason;
    return ['Disabled', 'mute', reason === null ? '' : (DISABLED[reason] ?? reason)];
  }
  if (endpoint.paused) return ['Paused', 'info', 'nothing is sent until it is resumed'];
  if (health.circuit === 'open') return ['Circuit open', 'bad', 'requests stop until a probe succeeds'];
  if (health.circuit === 'half_open') return ['Probing', 'warn', 'one request at a time'];
  if (health.consecutive_failures > 0 || (health.success_rate ?? 1) < 0.95) return ['Failing', 'warn', ''];
  return ['Healthy', 'good', ''];
}
