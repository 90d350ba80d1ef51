/**
 * The log: one wide line per unit of work, JSON for machines, pretty for people on a terminal. It goes to stderr, so
 * that stdout holds only what a command has to say.
 *
 * A level that is off costs an empty call: pino puts a no-op in place of its method. What it cannot spare is
 * the making of the arguments, so build an expensive one only behind `log.isLevelEnabled('debug')`.
 */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';

export type Log = Logger;

export interface LogOptions {
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly logFormat: 'auto' | 'json' | 'pretty';
}

const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'secrets',
  'token',
  'key',
  'apiKey',
  'adminKey',
  'encryptionKey',
  'previousEncryptionKeys',
  'databaseUrl',
  'connectionString',
];
/** At the top, and two levels down (`req.headers.authorization`). Deeper would cost every line more. */
const REDACTED = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

const STDERR = 2;
/** If whoever reads the log stands still, lines past this are dropped: the log must not eat the memory. */
const MOST_BUFFERED_BYTES = 16 * 1024 * 1024;

export function createLog(options: LogOptions, to?: DestinationStream): Log {
  return pino(
    {
      level: options.logLevel,
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: '****' },
    },
    to ?? openDestination(options.logFormat),
  );
}

/** For tests, and for callers that do not care. */
export const silentLog: Log = pino({ level: 'silent' });

function openDestination(format: LogOptions['logFormat']): DestinationStream {
  const isPretty = format === 'pretty' || (format === 'auto' && process.stderr.isTTY === true);
  if (isPretty) {
    // In this thread and synchronous: a worker thread would lose the last lines of a crash.
    return pretty({
      destination: STDERR,
      sync: true,
      colorize: process.stderr.isTTY === true && process.env.NO_COLOR === undefined,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid',
    });
  }
  // Asynchronous but not held back: lines that come while one write is under way go out with the next one.
  // pino writes out what is left on exit and on `fatal`.
  return destination({ dest: STDERR, sync: false, maxLength: MOST_BUFFERED_BYTES });
}
