/**
 * Maps error codes to the closed set of error classes. Messages of other libraries' errors are neither parsed nor shown,
 * because they contain addresses that a tenant must not learn.
 */
import { errors } from 'undici';
import type { ErrorClass } from '../domain/outcome.ts';

/** A failure whose class is known. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError';
  readonly errorClass: ErrorClass;
  /** undici distinguishes its own errors by `code`. */
  readonly code = 'POSTHORN_DELIVERY';
  /** The code of the cause, if it has one. */
  readonly detail: string | null;

  constructor(errorClass: ErrorClass, cause?: unknown) {
    super(errorClass, { cause });
    this.errorClass = errorClass;
    this.detail = cause === undefined ? null : codeOf(cause);
  }
}

/** Error codes of a resource shortage on this machine. The receiver does not cause them. */
export const SHORTAGES: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
]);

/** Returns the code of a shortage on this machine, or null if the error is another one. */
export function shortageOf(error: unknown): string | null {
  const code = error instanceof DeliveryError ? error.detail : codeOf(error);
  return code !== null && SHORTAGES.has(code) ? code : null;
}

export type ConnectStage = 'dns' | 'tcp' | 'tls' | 'proxy';

export function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' && code !== '') return code;
  // Several addresses were tried and all failed: report the last error.
  if (error instanceof AggregateError) return codeOf(error.errors.at(-1));
  return null;
}

const TCP: Record<string, ErrorClass> = {
  ECONNREFUSED: 'connect_refused',
  ETIMEDOUT: 'connect_timeout',
  ERR_SOCKET_CONNECTION_TIMEOUT: 'connect_timeout',
  ECONNRESET: 'connection_reset',
};

const TLS: Record<string, ErrorClass> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_name_mismatch',
  HOSTNAME_MISMATCH: 'tls_name_mismatch',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_untrusted',
  CERT_UNTRUSTED: 'tls_untrusted',
  CERT_REVOKED: 'tls_untrusted',
  CERT_CHAIN_TOO_LONG: 'tls_untrusted',
  INVALID_CA: 'tls_untrusted',
};

/** Classifies an error while connecting. The same code means different things at different stages. */
export function connectError(stage: ConnectStage, cause: unknown): DeliveryError {
  if (cause instanceof DeliveryError) return cause;
  if (shortageOf(cause) !== null) return new DeliveryError('internal', cause);
  const code = codeOf(cause) ?? '';
  switch (stage) {
    case 'dns':
      return new DeliveryError('dns_failed', cause);
    case 'tcp':
      return new DeliveryError(TCP[code] ?? 'connection_failed', cause);
    case 'tls':
      return new DeliveryError(TLS[code] ?? 'tls_failed', cause);
    case 'proxy':
      return new DeliveryError('proxy_failed', cause);
  }
}

const EXCHANGE: Record<string, ErrorClass> = {
  UND_ERR_SOCKET: 'connection_reset',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  ETIMEDOUT: 'connection_reset',
  UND_ERR_HEADERS_OVERFLOW: 'response_headers_too_large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'response_invalid',
};

/** Classifies an error on an open connection. */
export function exchangeErrorClass(error: unknown): ErrorClass {
  if (error instanceof DeliveryError) return error.errorClass;
  if (shortageOf(error) !== null) return 'internal';
  // Check the class: the parser's code (HPE_…) is usually missing.
  if (error instanceof errors.HTTPParserError) return 'response_invalid';
  const code = codeOf(error);
  if (code === null) return 'internal';
  const known = EXCHANGE[code];
  if (known !== undefined) return known;
  // TLS alerts and broken records after the handshake.
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return 'tls_failed';
  if (code.startsWith('UND_') || code.startsWith('ERR_')) return 'internal';
  return 'connection_failed';
}

/** True if the connection was lost, as happens with a keep-alive socket that the receiver has just closed. */
export function isConnectionLoss(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

export function statusErrorClass(status: number): ErrorClass | null {
  if (status >= 200 && status < 300) return null;
  if (status === 408) return 'http_408';
  if (status === 410) return 'http_410';
  if (status === 429) return 'http_429';
  if (status < 200) return 'http_1xx';
  if (status < 400) return 'http_3xx';
  return status < 500 ? 'http_4xx' : 'http_5xx';
}

const MESSAGES: Record<ErrorClass, string> = {
  dns_failed: 'The host name could not be resolved',
  egress_forbidden: 'The destination is not allowed',
  connect_refused: 'The connection was refused',
  connect_timeout: 'The connection could not be made in time',
  connection_failed: 'The connection could not be made',
  connection_reset: 'The connection was closed before an answer came',
  tls_expired: 'The TLS certificate has expired',
  tls_name_mismatch: 'The TLS certificate is for another name',
  tls_untrusted: 'The TLS certificate is not trusted',
  tls_failed: 'The TLS handshake failed',
  timeout: 'No answer within the deadline',
  response_invalid: 'The answer is not valid HTTP',
  response_headers_too_large: 'The response headers are too large',
  http_1xx: 'Only informational responses came',
  http_3xx: 'The receiver redirects',
  redirect_failed: 'The redirect could not be followed',
  http_4xx: 'The receiver rejected the request',
  http_408: 'The receiver reported a request timeout',
  http_410: 'The receiver is gone',
  http_429: 'The receiver asks for fewer requests',
  http_5xx: 'The receiver failed',
  oauth_failed: 'The token endpoint gave no access token',
  oauth_rejected: 'The receiver refused the access token',
  batch_event_failed: 'The receiver reported that this event of the batch failed',
  batch_result_invalid: 'The batch result of the receiver cannot be read',
  mail_failed: 'The mail server did not take the message',
  mail_rejected: 'The mail server refused the message',
  conversion_failed: 'The payload could not be converted',
  proxy_failed: 'The egress proxy failed',
  internal: 'The request could not be made',
};

/** One line for the attempt log: the class in words, with a status or an error code, never an address. */
export function errorMessage(errorClass: ErrorClass, detail: string | number | null = null): string {
  return detail === null ? `${MESSAGES[errorClass]}.` : `${MESSAGES[errorClass]} (${detail}).`;
}
