import { isStoreOutage, StoreError } from '../ports/store-error.ts';

/** What went wrong with a statement, by SQLSTATE, as far as somebody has to act differently on it. */
export type Failure =
  | 'bad_row' // class 22 and 23: some value of the batch; the others are innocent
  | 'no_partition' // the id's time lies outside the partitions that exist
  | 'conflict' // deadlock, serialization, lock timeout: the same again may well succeed
  | 'timeout' // the statement was cancelled, by its timeout or by an administrator: nothing was written
  | 'unknown' // the connection went away: nobody knows whether it was committed
  | 'unavailable' // refused for now: starting, stopping, too many connections, disk full, read only
  | 'other';

export function failureOf(error: unknown): Failure {
  // Only the server's own errors have a severity. The others (EPIPE, ECONNRESET, …) come from the socket.
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  if (typeof code !== 'string' || typeof severity !== 'string') return 'unknown';
  const kind = code.slice(0, 2);
  if (code === '23514' && isMissingPartition(error)) return 'no_partition';
  if (kind === '22' || kind === '23') return 'bad_row';
  if (kind === '40' || code === '55P03') return 'conflict';
  if (code === '57014') return 'timeout';
  if (kind === '57' || kind === '08') return 'unknown';
  if (kind === '53' || code === '25006') return 'unavailable';
  return 'other';
}

/** What `pg` itself says when the connection is gone, or none is to be had. */
const NO_CONNECTION =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error)/;

/** What becomes of a connection that was there. */
const CUT = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

/** Not a fault of the statement: the database is not there, has too much to do, or somebody else is in the way. */
export function isOutage(error: unknown): boolean {
  if (error instanceof StoreError) return isStoreOutage(error);
  const { severity, code, syscall, message } = (error ?? {}) as Record<string, unknown>;
  if (typeof severity === 'string')
    return ['conflict', 'timeout', 'unknown', 'unavailable'].includes(failureOf(error));
  return (
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    CUT.has(String(code)) ||
    NO_CONNECTION.test(String(message))
  );
}

function isMissingPartition(error: unknown): boolean {
  // A check violation without a named constraint is PostgreSQL's "no partition of relation found for row".
  return (error as { constraint?: unknown }).constraint === undefined;
}
