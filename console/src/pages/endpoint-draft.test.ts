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
    [{ adaptive: 'off' }, { adaptive: 'off' }],
    [{ region: ' eu' }, { region: 'eu' }],
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

  it('FAN-4: batches and debounce are sent whole, and a change back removes them', () => {
    const debounced = {
      shaping: 'debounce',
      debounce_key: ' data.id',
      debounce_window_ms: '500',
    } as const;
    expect(patchFor({ shaping: 'batch', batch_max_events: '50' })).toEqual({
      batch: { max_events: 50, split_rejected: true },
    });
    expect(patchFor(debounced)).toEqual({ debounce: { key: 'data.id', window_ms: 500, mode: 'last' } });
    const saved = toDraft({
      ...endpoint,
      debounce: { key: 'data.id', window_ms: 500, mode: 'first', max_wait_ms: 5_000 },
    });
    // The default of the longest delay follows the window.
    expect(toPatch(saved, { ...saved, debounce_window_ms: '60000' })).toEqual({
      debounce: { key: 'data.id', window_ms: 60_000, mode: 'first' },
    });
    expect(toPatch(saved, { ...saved, shaping: 'none' })).toEqual({ debounce: null });
  });

  it.each<[Partial<Draft>, string[]]>([
    [{ shaping: 'batch', ordering: 'fifo' }, []],
    [{ shaping: 'batch', api_version: 'v2' }, ['batch']],
    [
      { shaping: 'debounce', debounce_key: 'data.id', debounce_window_ms: '5', ordering: 'fifo' },
      ['debounce'],
    ],
    [{ shaping: 'debounce', ordering: 'none' }, ['debounce.key', 'debounce.window_ms']],
    [
      { shaping: 'debounce', debounce_key: 'data.id', debounce_window_ms: '50', debounce_max_wait_ms: '5' },
      ['debounce.max_wait_ms'],
    ],
  ])('FAN-4: %j has errors at %j before it is sent', (changes, paths) => {
    let errors: readonly { path: string }[] = [];
    try {
      patchFor(changes);
    } catch (error) {
      errors = (error as { errors: typeof errors }).errors;
    }
    expect(errors.map(({ path }) => path)).toEqual(paths);
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
    const urlError = { path: 'url', message: 'must be a complete URL, such as https://example.com/hooks' };
    for (const url of ['', 'example.com', 'ftp://example.com/'])
      expect(() => patchFor({ url, metadata: '{', filter: 'x' })).toThrow(
        expect.objectContaining({ errors: [urlError, ...errors] }),
      );
  });

  it('a URL alone is left to the API', () => {
    expect(patchFor({ url: 'example.com' })).toEqual({ url: 'example.com' });
  });
});
