import { expect, test } from 'vitest';
import { createLog } from './log.ts';
import { formatPretty } from './pretty-line.ts';

const TIME = '2026-11-17T09:05:03.007Z';

/** The line that the log writes, formatted. */
function shown(write: (log: ReturnType<typeof createLog>) => void, colors = false): string {
  let text = '';
  const log = createLog(
    { logLevel: 'trace', logFormat: 'json' },
    {
      write: (line) => {
        text += formatPretty(line.replace(/"time":"[^"]*"/, `"time":"${TIME}"`), { colors });
      },
    },
  );
  write(log);
  return text;
}

test('a line has the local time, the level and the message, then its fields', () => {
  const at = new Date(TIME);
  const hour = String(at.getHours()).padStart(2, '0');
  const minute = String(at.getMinutes()).padStart(2, '0');
  expect(shown((log) => log.warn({ reason: 'refused', retryInMs: 250, to: { host: 'db' } }, 'waiting'))).toBe(
    `[${hour}:${minute}:03.007] WARN: waiting
    reason: "refused"
    retryInMs: 250
    to: {
      "host": "db"
    }
`,
  );
});

test('an error is shown with its stack, and with its other fields', () => {
  const error = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' });
  const text = shown((log) => log.error({ err: error }, 'failed'));
  expect(text).toContain('    err: Error: no route\n        at ');
  expect(text).toContain('"code": "EHOSTUNREACH"');
  expect(text).not.toContain('"stack"');
});

test('levels, messages and names have colours on a terminal only', () => {
  const write = (log: ReturnType<typeof createLog>) => log.info({ port: 1 }, 'listening');
  expect(shown(write, true)).toContain('\u001b[32mINFO\u001b[39m: \u001b[36mlistening\u001b[39m');
  expect(shown(write)).not.toContain('\u001b');
});

test('text of others cannot control the terminal', () => {
  const text = shown((log) => log.info({ url: 'a\u001b[2Jb' }, 'called \u001b[31mred\r\nfaked: line'));
  expect(text).toContain('called red\\r\\nfaked: line\n');
  expect(text).not.toContain('\u001b');
});
