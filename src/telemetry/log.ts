/**
 * The log: one wide line per unit of work, JSON for machines, pretty for people on a terminal. It goes to stderr, so
 * that stdout holds only what a command has to say.
 *
 * A level that is off costs an empty call: pino puts a no-op in place of its method. What it cannot spare is
 * the making of the arguments, so build an expensive one only behind `log.isLevelEnabled('debug')`.
 */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';
import { redact } from './redact.ts';

export type Log = Logger;

export interface LogOptions {
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly logFormat: 'auto' | 'json' | 'pretty';
}

const STDERR = 2;
/** If whoever reads the log stands still, lines past this are dropped: the log must not eat the memory. */
const MOST_BUFFERED_BYTES = 16 * 1024 * 1024;

export function createLog(options: LogOptions, to?: DestinationStream): Log {
  const log = pino(
    {
      level: options.logLevel,
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
    },
    to ?? openDestination(options.logFormat),
  );
  // pino does not show a child's fields to any formatter. Children inherit this method, and so do theirs.
  const child = log.child;
  log.child = function redactedChild(this: Log, fields, childOptions) {
    return child.call(this, redact(fields), childOptions) as never;
  };
  return log;
}

/** For tests, and for callers that do not care. */
export const silentLog: Log = pino({ level: 'silent' });

/** Whether people read this log as it is written. */
export function isPretty(format: LogOptions['logFormat']): boolean {
  return format === 'pretty' || (format === 'auto' && process.stderr.isTTY === true);
}

function openDestination(format: LogOptions['logFormat']): DestinationStream {
  if (isPretty(format)) {
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
