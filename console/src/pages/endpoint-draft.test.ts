import type { Endpoint } from '@posthorn/client';
import { describe, expect, it } from 'vitest';
import { type Draft, toDraft, toPatch, toSettings } from './endpoint-draft.ts';

const endpoint = {
  url: 'https://example.com/',
  description: 'Orders',
  events: ['order.*'],
  channels: [],
  payload: 'full',
  headers: { 'x-team': 'a', 'x-old': 'b' },
  auth: { type: 'basic', username: 'me', password: '[redacted]' },
  signature: 'standard',
  retry: {
    schedule: [0, 30],
    jitter: 'proportional',
    max_age_seconds: 259_200,
    permanent: ['4xx'],
    transient: [429],
  },
  breaker: null,
  timeout_ms: 15_000,
  max_in_flight: 10,
  rate_limit: { per_second: 5, burst: 10 },
  metadata: { team: 'a' },
} as unknown as Endpoint;
const draft = toDraft(endpoint);
const patchFor = (changes: Partial<Draft>) => toPatch(draft, { ...draft, ...changes });

describe('endpoint draft', () => {
  it('an unchanged draft makes an empty patch', () => {
    expect(toPatch(draft, { ...draft })).toEqual({});
    expect(toSettings(draft)).toMatchObject({
      events: ['order.*'],
      rate_limit: { per_second: 5, burst: 10 },
      breaker: null,
    });
  });

  it.each<[Partial<Draft>, object]>([
    [{ timeout_ms: '2000' }, { timeout_ms: 2000 }],
    [{ timeout_ms: '' }, { timeout_ms: null }],
    [{ timeout_ms: 'soon' }, { timeout_ms: 'soon' }],
    [{ events: 'a, b  c,' }, { events: ['a', 'b', 'c'] }],
    [{ events: ' ' }, { events: null }],
    [{ rate_per_second: '' }, { rate_limit: null }],
    [
      {
        headers: [
          ['x-team', 'z'],
          ['', 'ignored'],
        ],
      },
      { headers: { 'x-team': 'z', 'x-old': null } },
    ],
    [{ metadata: '' }, { metadata: { team: null } }],
    [{ breaker_on: true, consecutive: '3' }, { breaker: { consecutive: 3 } }],
    [{ signature: 'hex', signature_header: 'x-sig' }, { signature: { profile: 'hex', header: 'x-sig' } }],
    [{ auth: { ...draft.auth, type: 'none' } }, { auth: null }],
    [{ auth: { ...draft.auth, type: 'bearer', token: 't' } }, { auth: { type: 'bearer', token: 't' } }],
  ])('the change %j makes the patch %j', (changes, patch) => {
    expect(patchFor(changes)).toEqual(patch);
  });

  it('a retry policy is sent whole, with the fields of its kind only', () => {
    const rules = { jitter: 'proportional', max_age_seconds: 259_200, permanent: ['4xx'], transient: [429] };
    expect(patchFor({ retry_kind: 'exponential', base: '5', attempts: '4' })).toEqual({
      retry: { base: 5, attempts: 4, ...rules },
    });
    expect(patchFor({ retry_kind: 'preset', preset: 'fast' })).toEqual({
      retry: { preset: 'fast', ...rules },
    });
    expect(patchFor({ schedule: '0, 1, 2' })).toEqual({ retry: { schedule: [0, 1, 2], ...rules } });
  });

  it('invalid JSON throws one error that names all fields', () => {
    const message = 'must be valid JSON';
    const errors = ['filter', 'metadata'].map((path) => ({ path, message }));
    expect(() => patchFor({ metadata: '{', filter: 'x' })).toThrow(expect.objectContaining({ errors }));
  });
});
