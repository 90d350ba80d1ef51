import { describe, expect, it } from 'vitest';
import { DEVELOPMENT_EGRESS } from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import { applyPatch, type EditableEndpoint } from './endpoint-patch.ts';

const clock = { now: () => 0 } as Clock;
const before = (config: EditableEndpoint['config'] = {}): EditableEndpoint => ({
  url: 'https://receiver.example/',
  description: '',
  config,
  metadata: {},
  enabled: true,
  disabled_reason: null,
  paused: false,
});
const patchHeaders = (config: EditableEndpoint['config'], headers: Record<string, string | null>) =>
  applyPatch(before(config), { headers }, { egress: DEVELOPMENT_EGRESS, clock }).config.headers;
const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const withValue = <T>(list: readonly string[], value: T): Record<string, T> =>
  Object.fromEntries(list.map((name) => [name, value]));

describe('the headers of a patch', () => {
  it('refuses 100,000 names at once, without merging them', () => {
    const headers = withValue(names(100_000, 'x'), '1');
    const started = performance.now();
    expect(() => patchHeaders({}, headers)).toThrow('headers: must have at most 100 entries, has 100000');
    expect(performance.now() - started).toBeLessThan(1000);
  });

  it('replaces 50 stored headers by 50 others', () => {
    const stored = withValue(names(50, 'old'), '1');
    const added = withValue(names(50, 'new'), '2');
    expect(patchHeaders({ headers: stored }, { ...withValue(names(50, 'old'), null), ...added })).toEqual(
      added,
    );
  });

  it('compares names without case, also with stored names that differ only in case', () => {
    const stored = { 'x-team': 'a', 'X-TEAM': 'b', 'x-other': 'c' };
    expect(patchHeaders({ headers: stored }, { 'X-Team': 'd' })).toEqual({ 'X-Team': 'd', 'x-other': 'c' });
    expect(patchHeaders({ headers: stored }, { 'X-Team': null })).toEqual({ 'x-other': 'c' });
  });
});

describe('the header of a signature', () => {
  const patchSignature = (header: string) =>
    applyPatch(before(), { signature: { profile: 'hex', header } }, { egress: DEVELOPMENT_EGRESS, clock })
      .config;

  it.each(['proxy', 'Webhook', 'posthorn', 'proxy-x', 'host'])('cannot be %s', (header) => {
    expect(() => patchSignature(header)).toThrow('signature.header: is reserved');
  });

  it.each(['x-signature', 'webhook-signature', 'proxies'])('can be %s', (header) => {
    expect(patchSignature(header).signature).toMatchObject({ header });
  });
});
