import { isStoreOutage, StoreError, type StoreFailure } from '../ports/store-error.ts';

/** The SQLSTATE of posthorn.refuse_publish. */
const CLOSED_TENANT = 'PH409';

/**
 * Maps an error of `pg` to the failure that the ports know, by its SQLSTATE. `outcome_unknown` if the connection was lost.
 * 57014 is a cancelled statement: its timeout or an administrator ended it.
 */
export function failureOf(error: unknown): StoreFailure {
  // Only the server's own errors have a severity. The others (EPIPE, ECONNRESET, …) come from the socket.
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  if (typeof code !== 'string' || typeof severity !== 'string') return 'outcome_unknown';
  const kind = code.slice(0, 2);
  if (code === CLOSED_TENANT) return 'closed_tenant';
  if (code === '23514' && isMissingPartition(error)) return 'missing_partition';
  if (kind === '22' || kind === '23') return 'invalid_row';
  if (kind === '40' || code === '55P03') return 'conflict';
  if (code === '57014') return 'timeout';
  if (kind === '57' || kind === '08') return 'outcome_unknown';
  if (kind === '53' || code === '25006') return 'unavailable';
  return 'other';
}

/** Messages of `pg` itself if the connection is lost or none is free. */
const NO_CONNECTION =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error)/;

/** Codes of errors on an established connection. */
const LOST_CONNECTION_CODES = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

/**
 * True if the statement is not at fault: the database is unreachable or overloaded, or another transaction blocks it.
 */
export function isOutage(error: unknown): boolean {
  if (error instanceof StoreError) return isStoreOutage(error);
  const { severity, code, syscall, message } = (error ?? {}) as Record<string, unknown>;
  if (typeof severity === 'string')
    return ['conflict', 'timeout', 'outcome_unknown', 'unavailable'].includes(failureOf(error));
  return (
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    LOST_CONNECTION_CODES.has(String(code)) ||
    NO_CONNECTION.test(String(message))
  );
}

/** True for what the server or the connection to it reported. False for a bug in our own code. */
export function isDatabaseError(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown };
  return typeof severity === 'string' || isOutage(error);
}

function isMissingPartition(error: unknown): boolean {
  // A check violation without a named constraint is PostgreSQL's "no partition of relation found for row".
  return (error as { constraint?: unknown }).constraint === undefined;
}
