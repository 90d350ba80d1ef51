import { describe, expect, it } from 'vitest';
import { createLog } from './log.ts';
import { redact } from './redact.ts';

function capture(logLevel: 'info' | 'warn' = 'info') {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(
    { logLevel, logFormat: 'json' },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  return { lines, log };
}

describe('createLog', () => {
  it('writes one JSON object per line', () => {
    const { lines, log } = capture();
    log.info({ delivery: 'dlv_1', durationMs: 12 }, 'attempt');
    expect(lines).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        pid: process.pid,
        delivery: 'dlv_1',
        durationMs: 12,
        msg: 'attempt',
      },
    ]);
  });

  it('does nothing for a level that is off', () => {
    const { lines, log } = capture('warn');
    log.info('not written');
    expect(lines).toEqual([]);
    // pino has replaced the method by its no-op, so not even levels are compared.
    expect(log.info).toBe(log.debug);
    expect(log.warn).not.toBe(log.debug);
  });

  it('hides secrets in fields and in the fields of a child logger', () => {
    const { lines, log } = capture();
    log
      .child({ secret: 'one', tenant: 'acme' })
      .info({ request: { headers: { Authorization: 'Bearer two' } } });
    expect(lines[0]).toMatchObject({
      secret: '****',
      tenant: 'acme',
      request: { headers: { Authorization: '****' } },
    });
  });

  it('writes errors with their stack', () => {
    const { lines, log } = capture();
    log.error({ err: new TypeError('broken') }, 'failed');
    expect(lines[0]).toMatchObject({
      err: { type: 'TypeError', message: 'broken', stack: expect.any(String) },
    });
  });
});

describe('redact', () => {
  it('returns the same object if there is nothing to hide', () => {
    const fields = { a: 1, b: { c: [1, { d: 2 }] }, date: new Date(0), err: new Error('x') };
    expect(redact(fields)).toBe(fields);
  });

  it('copies only the objects that it changes', () => {
    const fields = { untouched: { a: 1 }, list: [{ token: 't', a: 1 }], password: 'p' };
    const redacted = redact(fields);
    expect(redacted).toEqual({ untouched: { a: 1 }, list: [{ token: '****', a: 1 }], password: '****' });
    expect(redacted.untouched).toBe(fields.untouched);
    expect(fields.password).toBe('p');
  });

  it.each([
    'authorization',
    'Authorization',
    'COOKIE',
    'Set-Cookie',
    'secret',
    'key',
    'adminKey',
    'databaseUrl',
  ])('hides %s', (field) => {
    expect(redact({ [field]: 'x' })).toEqual({ [field]: '****' });
  });

  it('shows that a secret is absent', () => {
    expect(redact({ secret: null, key: undefined })).toEqual({ secret: null, key: undefined });
  });

  it('does not hide fields whose names only resemble a secret', () => {
    const fields = { idempotencyKey: 'order-1', keys: 3, secretExpiresAt: 1 };
    expect(redact(fields)).toBe(fields);
  });

  it('handles an object that contains itself', () => {
    const circular: Record<string, unknown> = { a: 1 };
    circular.self = circular;
    expect(() => redact(circular)).not.toThrow();
  });
});
