/**
 * The log: one wide line per unit of work, JSON for machines, pretty for people on a terminal. It goes to stderr, so
 * that stdout contains only the output of the command.
 *
 * A level that is off costs an empty call: pino replaces its method by a no-op. The arguments are evaluated all the
 * same, so build expensive ones only after `log.isLevelEnabled('debug')`.
 */
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';
import { formatPretty } from './pretty-line.ts';
import { redact } from './redact.ts';

export type Log = Logger;

export interface LogOptions {
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly logFormat: 'auto' | 'json' | 'pretty';
}

const STDERR = 2;
/** If the reader of the log stalls, lines beyond this are dropped, so that the log does not fill the memory. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

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
  // pino does not pass the fields of a child logger to formatters. Children inherit this method, and so do their
  // children.
  const child = log.child;
  log.child = function redactedChild(this: Log, fields, childOptions) {
    return child.call(this, redact(fields), childOptions) as never;
  };
  return log;
}

/** True if the log is written for a person at a terminal. */
export function isPretty(format: LogOptions['logFormat']): boolean {
  return format === 'pretty' || (format === 'auto' && process.stderr.isTTY === true);
}

function openDestination(format: LogOptions['logFormat']): DestinationStream {
  if (isPretty(format)) {
    // In this thread and synchronous: a worker thread would lose the last lines of a crash.
    const stderr = destination({ dest: STDERR, sync: true });
    const colors = process.stderr.isTTY === true && process.env.NO_COLOR === undefined;
    return { write: (line) => void stderr.write(formatPretty(line, { colors })) };
  }
  // Asynchronous without a delay: lines that arrive during a write are written with the next one. pino writes the rest
  // on exit and on `fatal`.
  return destination({ dest: STDERR, sync: false, maxLength: MAX_BUFFERED_BYTES });
}
