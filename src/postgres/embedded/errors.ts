/** Codes of the embedded server's errors: one for each remedy. */
export type EmbeddedPostgresErrorCode =
  /** Another live process uses the data directory. */
  | 'held'
  /** The data directory is not empty, but this server cannot open a database in it. */
  | 'damaged'
  | 'disk_full'
  | 'unsupported_platform'
  | 'no_permission'
  /** Anything else; the message has the last lines of PostgreSQL's log. */
  | 'start_failed';

/** `message` says what is wrong, `hint` what to do. */
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

/** A remedy that always works. */
export const OWN_SERVER_HINT =
  'Or set DATABASE_URL to a PostgreSQL server of your own (15 or later); the embedded one is then not used.';

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
