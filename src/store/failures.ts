/** What went wrong with a statement, by SQLSTATE, as far as somebody has to act differently on it. */
export type Failure =
  | 'bad_row' // class 22 and 23: some value of the batch; the others are innocent
  | 'no_partition' // the id's time lies outside the partitions that exist
  | 'conflict' // deadlock, serialization, lock timeout: the same again may well succeed
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
  if (kind === '57' || kind === '08') return 'unknown';
  if (kind === '53' || code === '25006') return 'unavailable';
  return 'other';
}

function isMissingPartition(error: unknown): boolean {
  // A check violation without a named constraint is PostgreSQL's "no partition of relation found for row".
  return (error as { constraint?: unknown }).constraint === undefined;
}
