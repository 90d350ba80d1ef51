import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { newId } from '../domain/ids.ts';
import type { Problem } from '../domain/problem.ts';
import { sealConfig } from '../postgres/sealed-config.ts';
import { createSecretBox } from '../postgres/secret-box.ts';
import type { Caller } from './caller.ts';
import { refuseToMoveSecrets, showHeaders } from './shown-headers.ts';

const box = createSecretBox(randomBytes(32));
const id = newId(0);
const callerWith = (scope: Caller['scope']): Caller => ({
  keyId: id,
  scope,
  scopes: null,
  tenant: 'acme',
  prefix: 'phk_',
});
const mayRead = callerWith('tenant');
/** Stands for any key that may not read secrets. */
const mayNotRead = callerWith('read');

const config = sealConfig(
  {
    headers: { 'X-Env': 'test', 'x-route': 'hidden', authorization: 'hidden' },
    plain_headers: ['x-env'],
    auth: { type: 'bearer', token: 'hidden' },
  },
  id,
  box,
);
const endpoint = { id, config, url: 'https://example.com/hooks' };

describe('headers of an endpoint', () => {
  it('are all encrypted, and each caller sees only those that it may read', () => {
    expect(JSON.stringify(config)).not.toMatch(/hidden|"test"/);
    const shown = { 'X-Env': 'test', 'x-route': 'hidden', authorization: '[redacted]' };
    expect(showHeaders(endpoint, box, mayRead)).toEqual(shown);
    expect(showHeaders(endpoint, box, mayNotRead)).toEqual({ ...shown, 'x-route': '[redacted]' });
  });

  it('are shown as redacted if their encryption key is missing', () => {
    const other = createSecretBox(randomBytes(32));
    const all = { 'X-Env': '[redacted]', 'x-route': '[redacted]', authorization: '[redacted]' };
    expect(showHeaders(endpoint, other, mayRead)).toEqual(all);
  });
});

describe('a caller who may not read secrets', () => {
  const refused = (patch: Parameters<typeof refuseToMoveSecrets>[1], caller = mayNotRead): string[] => {
    try {
      refuseToMoveSecrets(endpoint, patch, caller);
      return [];
    } catch (error) {
      return (error as Problem).errors!.map(({ path }) => path);
    }
  };
  const url = 'https://attacker.example/';

  it('cannot move the endpoint to another URL together with its secrets', () => {
    expect(refused({ url }).sort()).toEqual([
      'auth',
      'headers.X-Env',
      'headers.authorization',
      'headers.x-route',
    ]);
    expect(refused({ url, auth: null, headers: { AUTHORIZATION: 'new', 'x-route': '[redacted]' } })).toEqual(
      expect.arrayContaining(['headers.x-route']),
    );
    expect(refused({ url: 'http://example.com/hooks' })).toContain('auth');
    expect(refused({ url: 'https://example.com:8443/' })).toContain('auth');
    // On a shared host, another path can belong to somebody else.
    expect(refused({ url: 'https://example.com/elsewhere' })).toContain('auth');
  });

  it('can repeat its URL, move it without its secrets, or change other settings', () => {
    expect(refused({ url: endpoint.url })).toEqual([]);
    expect(refused({ url, headers: null, auth: null })).toEqual([]);
    expect(refused({ description: 'x' })).toEqual([]);
    expect(refused({ url }, mayRead)).toEqual([]);
  });
});
