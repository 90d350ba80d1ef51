/** Formats a log line for a person at a terminal: time, level and message, then a line for each field. */
import { stripVTControlCharacters, styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const LEVEL_STYLES: Readonly<Record<string, Style>> = {
  trace: 'gray',
  debug: 'blue',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: ['bgRed', 'white'],
};
const INDENT = '    ';

interface SerializedError {
  readonly stack: string;
  readonly [field: string]: unknown;
}

/** Takes a line of JSON as pino writes it, and returns lines that end with a line feed. */
export function formatPretty(line: string, { colors }: { readonly colors: boolean }): string {
  const paint = (style: Style, text: string): string =>
    colors ? styleText(style, text, { validateStream: false }) : text;
  const { time, level, msg = '', pid: _pid, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const shownLevel = paint(LEVEL_STYLES[String(level)] ?? 'white', String(level).toUpperCase());
  const head = `[${timeOfDay(String(time))}] ${shownLevel}: ${paint('cyan', printable(String(msg)))}`;
  const rest = Object.entries(fields).map(
    ([name, value]) => `${INDENT}${paint('magenta', printable(name))}: ${formatValue(value)}`,
  );
  return `${[head, ...rest].join('\n')}\n`;
}

/** Returns local time, for the person at the terminal. */
function timeOfDay(time: string): string {
  const at = new Date(time);
  const pad = (value: number, length = 2): string => String(value).padStart(length, '0');
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

function formatValue(value: unknown): string {
  if (!isError(value)) return indent(JSON.stringify(value, null, 2));
  const { type: _type, message: _message, stack, ...others } = value;
  const shown = stack.split('\n').map(printable).join('\n');
  return indent(Object.keys(others).length === 0 ? shown : `${shown}\n${JSON.stringify(others, null, 2)}`);
}

const isError = (value: unknown): value is SerializedError =>
  typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string';

const indent = (text: string): string => text.replaceAll('\n', `\n${INDENT}`);

/** Escapes control characters: clients choose parts of some messages, and must not control the terminal. */
const printable = (text: string): string =>
  stripVTControlCharacters(text).replaceAll(/\p{Cc}/gu, (character) =>
    JSON.stringify(character).slice(1, -1),
  );
