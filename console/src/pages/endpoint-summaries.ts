/** The values of the closed sections of the endpoint form, in a few words. */
import { formatMs, plural } from '../ui/format.ts';
import { type Draft, PRESETS } from './endpoint-draft.ts';

const join = (...parts: (string | false)[]): string => parts.filter(Boolean).join(' · ');
const orDefault = (value: string, fallback: number): number => (value === '' ? fallback : Number(value));

export function summarizeDelivery(draft: Draft): string {
  return join(
    `timeout ${formatMs(orDefault(draft.timeout_ms, 15_000))}`,
    plural(orDefault(draft.max_in_flight, 10), 'concurrent request'),
    draft.adaptive === 'off' && 'adaptive limits off',
    draft.rate_per_second === '' ? 'no rate limit' : `${draft.rate_per_second} per second`,
    draft.region !== '' && `region ${draft.region}`,
    draft.ordering === 'fifo' ? 'strict order' : 'any order',
    draft.shaping === 'batch' && `batches of up to ${orDefault(draft.batch_max_events, 100)}`,
    draft.shaping === 'debounce' && `debounced by ${draft.debounce_key}`,
    draft.payload === 'thin' && 'thin payload',
    draft.channels.trim() === '' ? 'all channels' : `channels ${draft.channels}`,
  );
}

export function summarizeRetries(draft: Draft): string {
  const breaker = draft.breaker_on ? 'circuit breaker on' : 'circuit breaker off';
  switch (draft.retry_kind) {
    case 'preset':
      return join(PRESETS.find(([name]) => name === draft.preset)?.[1] ?? draft.preset, breaker);
    case 'schedule': {
      const count = draft.schedule.split(/[\s,]+/).filter((word) => word !== '').length;
      return join(plural(count, 'attempt'), breaker);
    }
    case 'exponential':
      return join(
        `up to ${plural(orDefault(draft.attempts, 10), 'attempt')}`,
        'exponential backoff',
        breaker,
      );
  }
}

const PROFILES: Record<string, string> = {
  standard: 'Standard Webhooks (HMAC)',
  'standard-ed25519': 'Standard Webhooks (Ed25519)',
  hex: 'Hex HMAC of the body',
  stripe: 'Compatible with Stripe',
  github: 'Compatible with GitHub',
};

export const summarizeSignature = (draft: Draft): string =>
  join(
    PROFILES[draft.signature] ?? draft.signature,
    draft.signature_header !== '' && `header ${draft.signature_header}`,
  );

const AUTH: Record<Draft['auth']['type'], string> = {
  none: 'no authentication',
  basic: 'basic authentication',
  bearer: 'bearer token',
  oauth2: 'OAuth 2',
};

export function summarizeAccess({ headers, auth, tls, challenge }: Draft): string {
  const named = headers.filter(([name]) => name.trim() !== '').length;
  return join(
    AUTH[auth.type],
    named === 0 ? 'no custom headers' : plural(named, 'custom header'),
    tls.cert !== '' && 'client certificate',
    challenge === '' ? 'no challenge' : `challenge ${challenge}`,
  );
}
