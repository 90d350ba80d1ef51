/** What can go wrong with the embedded server, by what the reader has to do about it. */
export type EmbeddedPostgresErrorCode =
  /** Another live process uses the data directory. */
  | 'held'
  /** Something is in the data directory, but not a database that this server can open. */
  | 'damaged'
  | 'disk_full'
  | 'unsupported_platform'
  | 'no_permission'
  /** Anything else; the message has the last lines of PostgreSQL's log. */
  | 'start_failed';

/** `message` says what is the case, `hint` what to do. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly code: EmbeddedPostgresErrorCode;
  readonly hint: string;

  constructor(code: EmbeddedPostgresErrorCode, message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.hint = hint;
  }
}

/** The way out that always exists. */
export const OWN_SERVER_HINT =
  'Or set DATABASE_URL to a PostgreSQL server of your own (15 or later); the embedded one is then not used.';

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
