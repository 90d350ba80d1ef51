import { describe, expect, it } from 'vitest';
import { ConfigError } from '../config/index.ts';
import { StoreError } from '../ports/store-error.ts';
import { DirectConnectionError } from '../postgres/pooler.ts';
import { explainError } from './explain-error.ts';
import { UsageError } from './usage-error.ts';

const context = { databaseUrl: 'postgres://app:s3cret@db:5432/x', port: 8787, host: '127.0.0.1' };
const failure = (fields: object, message = 'failed'): Error => Object.assign(new Error(message), fields);

describe('explainError', () => {
  it('gives usage errors their own exit code', () => {
    expect(explainError(new UsageError('which?'))).toMatchObject({ message: 'which?', exitCode: 2 });
    expect(explainError(new ConfigError([{ name: 'PORT', message: 'PORT: no' }]))).toMatchObject({
      exitCode: 1,
    });
  });

  it('explains the error of the driver inside a StoreError, and knows that it may pass', () => {
    const cause = failure({ code: '53300', severity: 'FATAL' }, 'too many connections for role');
    const explanation = explainError(new StoreError('unavailable', cause.message, { cause }), context);
    expect(explanation).toMatchObject({ isTransient: true });
    expect(explanation!.message).toMatch(/too many connections for role.*\n.*max_connections/);
  });

  it.each([
    [failure({ code: 'EADDRINUSE', syscall: 'listen' }), /Port 8787 is in use.*\n.*--port or PORT/],
    [failure({ code: 'EADDRINUSE', syscall: 'bind' }), /Port 8787 is in use/],
    [failure({ code: 'EACCES', syscall: 'listen' }), /above 1023/],
    [failure({ code: 'EADDRNOTAVAIL', syscall: 'listen' }), /no address 127\.0\.0\.1/],
    [failure({ code: 'ECONNREFUSED', syscall: 'connect' }), /cannot be reached \(ECONNREFUSED\)/],
    [failure({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }), /cannot be reached \(ENOTFOUND\)/],
    [failure({ code: 'ENOENT', syscall: 'connect' }), /cannot be reached \(ENOENT\)/],
    [
      new AggregateError([failure({ code: 'ECONNREFUSED', syscall: 'connect' }), failure({})]),
      /cannot be reached \(ECONNREFUSED\)/,
    ],
    [failure({}, 'timeout exceeded when trying to connect'), /cannot be reached \(timeout/],
    [
      failure({ code: '28P01', name: 'error' }, 'password authentication failed'),
      /refused: password.*\n.*password in/,
    ],
    [failure({ code: '3D000', name: 'error' }, 'database "x" does not exist'), /Create the database/],
    [failure({ code: '57P03', name: 'error', hint: 'for SQL' }), /starting or stopping/],
    [
      failure({ code: '08P01', name: 'error' }, 'server login has been failing'),
      /no connection to PostgreSQL through .*: server login has been failing.\n.*pooler/,
    ],
    [
      new DirectConnectionError(
        'postgres://app:s3cret@direct:5433/x',
        failure({ code: 'ECONNREFUSED', syscall: 'connect' }),
      ),
      /direct:5433.*cannot be reached.*\n.*POSTHORN_DIRECT_DATABASE_URL is right/,
    ],
    [failure({ name: 'SchemaError' }, 'The database is newer.'), /^The database is newer\.$/],
    [
      failure({ name: 'EmbeddedPostgresError', hint: 'Do this.' }, 'It is held.'),
      /^It is held\.\nDo this\.$/,
    ],
  ])('%s', (error, expected) => {
    const explanation = explainError(error, context)!;
    expect(explanation.exitCode).toBe(1);
    expect(explanation.message).toMatch(expected);
    expect(explanation.message).not.toContain('s3cret');
  });

  it.each(['SASL authentication failed', 'no such user: app'])(
    'does not wait for a pooler that says: %s',
    (message) => {
      const explanation = explainError(failure({ code: '08P01', name: 'error' }, message), context)!;
      expect(explanation.isTransient).toBe(false);
      expect(explanation.message).toMatch(/^The pooler at .* refused: .*\n.*password.*DATABASE_URL/);
    },
  );

  it.each([
    [new TypeError('x is not a function')],
    // Some missing file, not a socket that our server connects to or listens on.
    [failure({ code: 'ENOENT', syscall: 'open' })],
    ['a text'],
    [null],
    [undefined],
  ])('has no explanation for %s', (error) => {
    expect(explainError(error, context)).toBeNull();
  });
});
