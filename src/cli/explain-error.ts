/** Turns errors that the user can fix into one message without a stack: what is wrong, and what to do. */
import { ConfigError, maskUrl } from '../config/index.ts';
import { StoreError } from '../ports/store-error.ts';
import { DirectConnectionError } from '../postgres/pooler.ts';
import { UsageError } from './usage-error.ts';

export interface Explanation {
  readonly message: string;
  readonly exitCode: number;
  /** The database is unreachable or busy: the same start may succeed later. */
  readonly isTransient: boolean;
}

interface ErrorContext {
  readonly databaseUrl?: string | null;
  /** The setting that `databaseUrl` comes from. Default: DATABASE_URL. */
  readonly setting?: string;
  readonly port?: number;
  readonly host?: string;
}

/** Returns null for an unexpected error, which is best shown with its stack. */
export function explainError(thrown: unknown, context: ErrorContext = {}): Explanation | null {
  if (thrown instanceof DirectConnectionError)
    return explainError(thrown.cause, {
      ...context,
      databaseUrl: thrown.url,
      setting: 'POSTHORN_DIRECT_DATABASE_URL',
    });
  const error = thrown instanceof StoreError ? thrown.cause : thrown;
  if (error instanceof UsageError) return { message: error.message, exitCode: 2, isTransient: false };
  if (error instanceof ConfigError) return { message: error.message, exitCode: 1, isTransient: false };
  const ofProgram = explainByHint(error) ?? explainListen(error, context);
  const message = ofProgram ?? explainDatabase(error, context);
  return message === null
    ? null
    : { message, exitCode: 1, isTransient: ofProgram === null && isTransient(error) };
}

/** Errors whose message already says what to do: a wrong schema or encryption key. */
const HAS_FULL_MESSAGE = new Set(['SchemaError', 'SecretBoxError', 'ArchiveError', 'ConfigFileError']);

/** Explains errors that have a `hint`, such as EmbeddedPostgresError, or a full message. */
function explainByHint(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  // PostgreSQL's own errors (named `error`) carry hints too, but those are for people who write SQL.
  if ('hint' in error && typeof error.hint === 'string' && error.name !== 'error') {
    return `${error.message}\n${error.hint}`;
  }

  return HAS_FULL_MESSAGE.has(error.name) ? error.message : null;
}

function explainListen(error: unknown, { port, host }: ErrorContext): string | null {
  const { code, syscall } = fieldsOf(error);
  if (syscall !== 'listen' && syscall !== 'bind') return null;
  const where = `${host ?? ''}:${port ?? ''}`;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is in use: another program, perhaps another Posthorn, listens on ${where}.\nStop it, or choose another port with --port or PORT.`;
    case 'EACCES':
      return `This user may not listen on ${where}.\nChoose a port above 1023 with --port or PORT.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `This machine has no address ${host}.\nSet --host or HOST to 127.0.0.1, 0.0.0.0 or one of its own addresses.`;
    default:
      return null;
  }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ECONNRESET',
  'ENOENT',
]);
/** Codes of errors on an established connection. */
const LOST_CONNECTION_CODES = new Set(['ECONNRESET', 'ETIMEDOUT']);
/** SQLSTATEs of a server that answers but refuses the connection. `{setting}` stands for the setting of its address. */
const REFUSALS: Readonly<Record<string, string>> = {
  '28P01': 'Check the user and the password in {setting}.',
  '28000':
    'Check the user in {setting}, and whether pg_hba.conf allows it to connect from this machine, with or without TLS.',
  '3D000': 'Create the database, or correct its name in {setting}.',
  '42501':
    'Create the schema posthorn for the user, grant the missing privilege, or run `posthorn migrate` as the owner. See docs/operate/roles.md; `posthorn doctor` lists missing grants.',
  '53300':
    'The server has no connection left. Raise its max_connections, or lower POSTHORN_DATABASE_POOL_SIZE.',
  '57P01': 'The server is stopping. Try again in a moment.',
  '57P02': 'The server has crashed. Try again in a moment.',
  '57P03': 'The server is starting or stopping. Try again in a moment.',
};

/** SQLSTATEs of a server that refuses for now. */
const TRANSIENT = new Set(['53300', '57P01', '57P02', '57P03']);

const isTransient = (error: unknown): boolean => {
  const { code } = fieldsOf(error);
  if (isRefusedByPooler(error)) return false;
  return isUnreachable(error) || (code !== undefined && (TRANSIENT.has(code) || isConnectionFailure(code)));
};

/** Class 08: a pooler in front of PostgreSQL answers, and has no connection to it. */
const isConnectionFailure = (code: string): boolean => /^08...$/.test(code);

/** PgBouncer has one code for everything, also for a user, password or database that it does not know. */
const isRefusedByPooler = (error: unknown): boolean =>
  isConnectionFailure(fieldsOf(error).code ?? '') &&
  /authentication failed|no such (user|database)/.test((error as Error).message);

function isUnreachable(error: unknown): boolean {
  const { code, syscall } = fieldsOf(error);
  const timedOut =
    error instanceof Error &&
    /timeout exceeded when trying to connect|timeout expired|Connection terminated|Query read timeout/.test(
      error.message,
    );
  const connecting =
    syscall === 'connect' || syscall === 'getaddrinfo' || LOST_CONNECTION_CODES.has(code ?? '');
  return timedOut || (connecting && code !== undefined && UNREACHABLE.has(code));
}

function explainDatabase(
  error: unknown,
  { databaseUrl, setting = 'DATABASE_URL' }: ErrorContext,
): string | null {
  const { code } = fieldsOf(error);
  const where = databaseUrl === null || databaseUrl === undefined ? 'the database' : maskUrl(databaseUrl);
  if (code !== undefined && REFUSALS[code] !== undefined) {
    return `PostgreSQL at ${where} refused: ${(error as Error).message}.\n${REFUSALS[code].replace('{setting}', setting)}`;
  }
  if (isRefusedByPooler(error)) {
    return `The pooler at ${where} refused: ${(error as Error).message}.\nCheck the user, the password and the database in ${setting}, and the users that the pooler knows.`;
  }
  if (code !== undefined && isConnectionFailure(code)) {
    return `There is no connection to PostgreSQL through ${where}: ${(error as Error).message}.\nCheck that PostgreSQL runs, and the log of the pooler.`;
  }
  if (isUnreachable(error)) {
    const reason = code ?? (error as Error).message;
    return `PostgreSQL at ${where} cannot be reached (${reason}).\nCheck that it runs and that ${setting} is right.`;
  }
  return null;
}

/** A host with several addresses fails with one error for each of them: uses the first. */
function fieldsOf(error: unknown): { code?: string; syscall?: string } {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  return (first ?? {}) as { code?: string; syscall?: string };
}
