/**
 * The outcome of one HTTP request, with a closed set of error classes. The deliver stage produces it, `decide` turns it
 * into a verdict, and the attempt log shows it. No code depends on the text of an error message.
 */

/** Every way an attempt can fail, with what the receiver's owner can do about it. */
export const errorClasses = {
  dns_failed:
    'The host name does not resolve, or not to an address that Posthorn may call. Check the spelling of the URL and its DNS records.',
  egress_forbidden:
    'The URL leads to an address that Posthorn may not call (private, loopback, metadata or otherwise reserved). Use a publicly reachable address, or have the operator allow it.',
  connect_refused: 'Nothing listens on that port. Check that the receiver runs and that the port is right.',
  connect_timeout:
    'No connection within the connect timeout. Check firewalls between Posthorn and the receiver.',
  connection_failed: 'The connection could not be made. Check the network between Posthorn and the receiver.',
  connection_reset:
    'The receiver closed the connection before it answered. Look for crashes or proxies that cut it.',
  tls_expired: 'The TLS certificate has expired. Renew it.',
  tls_name_mismatch: 'The TLS certificate is for another host name. Install one that names this host.',
  tls_untrusted:
    'The TLS certificate is self-signed or its chain is incomplete. Use a public certificate authority and send the intermediate certificates.',
  tls_failed:
    'The TLS handshake failed. Check protocol versions and ciphers of the receiver, and the client certificate (tls) if it asks for one.',
  timeout: 'No complete answer within the deadline. Answer 2xx first and do the work afterwards.',
  response_invalid: 'The answer was not valid HTTP. Check what serves this port.',
  response_headers_too_large: 'The response headers are larger than Posthorn reads. Send fewer.',
  http_1xx: 'The receiver answered with an informational status only. Answer with a 2xx.',
  http_3xx: 'The receiver redirects. Register the final URL, or turn on follow_redirects (307 and 308 only).',
  redirect_failed:
    'The redirect could not be followed: too many hops, no location, not a 307 or 308, or to another host where the operator requires consent.',
  http_4xx:
    'The receiver rejected the request. Its answer says why. Posthorn does not try this event again; replay it when the receiver is fixed.',
  http_408: 'The receiver reported a request timeout.',
  http_410: 'The receiver says that it is gone for good. The endpoint has been disabled.',
  http_429: 'The receiver asks for fewer requests. Set a rate_limit on the endpoint.',
  http_5xx: 'The receiver failed. Look into its logs at the time of the attempt.',
  oauth_failed:
    'The token endpoint gave no access token. Check token_url, client_id, client_secret and scope of auth, and whether it works.',
  oauth_rejected:
    'The receiver refused an access token that should still have been good. The next attempt fetches a new one.',
  batch_event_failed:
    'The receiver answered for the batch that this event failed. Its log should say why; only the failed events are sent again.',
  batch_result_invalid:
    'The receiver answered with a batch result that Posthorn cannot read. Answer {"failed": ["evt_…"]}, at most 64 KiB.',
  mail_failed:
    'The mail server did not take the message this time. If it lasts, it is for the operator of Posthorn to fix.',
  mail_rejected:
    'The mail server refused the message permanently. Check the address. Posthorn does not send this message again.',
  conversion_failed:
    'The payload could not be converted to the version that the endpoint pins, so nothing was sent. This is for the operator of Posthorn to fix: correct the converter and restart; the next attempt converts again.',
  proxy_failed: 'The egress proxy refused or failed. This is for the operator of Posthorn to fix.',
  internal: 'Posthorn itself failed to make the request. This is for the operator of Posthorn to fix.',
} as const;
export type ErrorClass = keyof typeof errorClasses;

export interface AttemptTiming {
  /** Null if the connection was already open. */
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** From the start of the attempt to the response's status line. */
  readonly firstByteMs: number | null;
}

export interface AttemptOutcome {
  readonly startedAt: number;
  readonly durationMs: number;
  readonly timing: AttemptTiming;
  readonly statusCode: number | null;
  readonly error: { readonly class: ErrorClass; readonly message: string } | null;
  /** The URL that answered (or failed), after redirects. */
  readonly url: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly responseHeaders: Readonly<Record<string, string>> | null;
  /** The receiver's bytes, unchanged, up to the cap. */
  readonly responseBody: Buffer | null;
  readonly responseTruncated: boolean;
  /** Parsed from `Retry-After` of a 429 or 503. */
  readonly retryAfterMs: number | null;
  /**
   * Set if this does not count as an attempt: the lease expired before it was sent, this machine lacked a resource for it,
   * or the worker stopped meanwhile.
   */
  readonly withdrawn?: true;
  /** The error code if this machine has run out of descriptors, ports, buffers or memory. `withdrawn` is set too. */
  readonly shortage?: string;
}

/** The outcome of an attempt that failed before there was a request. */
export function unsentOutcome(
  url: string,
  error: { readonly class: ErrorClass; readonly message: string },
  now: number,
): AttemptOutcome {
  return {
    startedAt: now,
    durationMs: 0,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
    statusCode: null,
    error,
    url,
    requestHeaders: {},
    responseHeaders: null,
    responseBody: null,
    responseTruncated: false,
    retryAfterMs: null,
  };
}

export type Trigger = 'auto' | 'replay' | 'test';

export const deadReasons = ['exhausted', 'rejected', 'gone', 'expired', 'worker_crash'] as const;
export type DeadReason = (typeof deadReasons)[number];

export type Verdict =
  | { readonly kind: 'delivered' }
  | {
      readonly kind: 'retry';
      readonly dueAt: number;
      /** True if this attempt does not count for the retry schedule: a rejected batch that is split. */
      readonly isUncounted?: true;
    }
  | { readonly kind: 'dead'; readonly reason: DeadReason; readonly disableEndpoint: boolean };
