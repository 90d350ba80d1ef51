import { expect, it } from 'vitest';
import { toDraft } from './endpoint-draft.ts';
import {
  summarizeAccess,
  summarizeDelivery,
  summarizeRetries,
  summarizeSignature,
} from './endpoint-summaries.ts';

const draft = toDraft({});

it('the closed sections show the defaults of a new endpoint', () => {
  expect(summarizeDelivery(draft)).toBe(
    'timeout 15 s · 10 concurrent requests · no rate limit · any order · all channels',
  );
  expect(summarizeRetries(draft)).toBe('Default: 7 attempts over 34 hours · circuit breaker on');
  expect(summarizeSignature(draft)).toBe('Standard Webhooks (HMAC)');
  expect(summarizeAccess(draft)).toBe('no authentication · no custom headers · no challenge');
});

it('the closed sections show what was changed', () => {
  expect(summarizeDelivery({ ...draft, timeout_ms: '2000', rate_per_second: '5', ordering: 'fifo' })).toBe(
    'timeout 2 s · 10 concurrent requests · 5 per second · strict order · all channels',
  );
  expect(summarizeDelivery({ ...draft, shaping: 'batch', batch_max_events: '50' })).toContain(
    'any order · batches of up to 50 · all',
  );
  expect(summarizeDelivery({ ...draft, shaping: 'debounce', debounce_key: 'data.id' })).toContain(
    'debounced by data.id',
  );
  expect(summarizeRetries({ ...draft, retry_kind: 'schedule', schedule: '0, 30', breaker_on: false })).toBe(
    '2 attempts · circuit breaker off',
  );
  expect(summarizeAccess({ ...draft, headers: [['x-a', 'b']], auth: { ...draft.auth, type: 'basic' } })).toBe(
    'basic authentication · 1 custom header · no challenge',
  );
});
