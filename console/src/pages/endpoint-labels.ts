import type { FieldError } from '../api/client.ts';

/** The fields of the endpoint form by their names in the API: their sections, and their labels for messages. */
export type FormSection = 'destination' | 'delivery' | 'retries' | 'signature' | 'access' | 'metadata';

const FIELDS: Record<string, readonly [FormSection, string]> = {
  url: ['destination', 'URL'],
  tenant: ['destination', 'Tenant'],
  description: ['destination', 'Description'],
  events: ['destination', 'Event types'],
  filter: ['destination', 'Filter (JSON)'],
  channels: ['delivery', 'Channels'],
  timeout_ms: ['delivery', 'Timeout (ms)'],
  max_in_flight: ['delivery', 'Concurrent requests'],
  adaptive: ['delivery', 'Adaptive limits'],
  'rate_limit.burst': ['delivery', 'Burst'],
  rate_limit: ['delivery', 'Rate limit (per second)'],
  region: ['delivery', 'Region'],
  ordering: ['delivery', 'Ordering'],
  fifo_on_dead: ['delivery', 'When a delivery dies (strict ordering)'],
  payload: ['delivery', 'Payload'],
  follow_redirects: ['delivery', 'Redirects to follow'],
  api_version: ['delivery', 'API version'],
  'batch.max_events': ['delivery', 'Events per request'],
  'batch.max_wait_ms': ['delivery', 'Longest wait for more events (ms)'],
  'batch.max_bytes': ['delivery', 'Largest body (bytes)'],
  'batch.split_rejected': ['delivery', 'Send a rejected batch again in halves'],
  batch: ['delivery', 'Requests'],
  'debounce.key': ['delivery', 'Key'],
  'debounce.mode': ['delivery', 'Event that is sent'],
  'debounce.window_ms': ['delivery', 'Window (ms)'],
  'debounce.max_wait_ms': ['delivery', 'Longest delay (ms)'],
  debounce: ['delivery', 'Requests'],
  'retry.schedule': ['retries', 'Seconds before each attempt'],
  'retry.base': ['retries', 'First retry after (s)'],
  'retry.factor': ['retries', 'Factor'],
  'retry.max_age_seconds': ['retries', 'Give up after (s)'],
  'retry.max': ['retries', 'Longest wait (s)'],
  'retry.attempts': ['retries', 'Attempts'],
  'retry.jitter': ['retries', 'Jitter'],
  'retry.permanent': ['retries', 'Never retry these status codes'],
  'retry.transient': ['retries', 'Retry these status codes anyway'],
  retry: ['retries', 'Policy'],
  'breaker.consecutive': ['retries', 'Consecutive failures'],
  'breaker.failure_rate': ['retries', 'Failure rate (0 to 1)'],
  'breaker.min_requests': ['retries', 'Minimum requests for the rate'],
  'breaker.window_seconds': ['retries', 'Window of the rate (s)'],
  'breaker.cooldown_seconds': ['retries', 'Pause before a probe (s)'],
  'breaker.max_cooldown_seconds': ['retries', 'Longest pause (s)'],
  breaker: ['retries', 'Circuit breaker'],
  'signature.header': ['signature', 'Header'],
  'signature.prefix': ['signature', 'Prefix'],
  signature: ['signature', 'Profile'],
  headers: ['access', 'Headers'],
  plain_headers: ['access', 'Headers without secrets'],
  auth: ['access', 'Authentication'],
  tls: ['access', 'Client certificate'],
  challenge: ['access', 'Challenge'],
  metadata: ['metadata', 'Metadata (JSON)'],
};

/** `retry.schedule[0]` belongs to `retry.schedule`; a field without a label of its own belongs to its object. */
function findField(path: string): readonly [FormSection, string] | undefined {
  const name = path.replace(/\[\d+\].*$/, '');
  if (FIELDS[name] !== undefined) return FIELDS[name];
  const dot = name.lastIndexOf('.');
  return dot === -1 ? undefined : findField(name.slice(0, dot));
}

/** The label of the field that an error of the API is about. */
export const labelField = (path: string): string => findField(path)?.[1] ?? path;
export const findSection = (path: string): FormSection | null => findField(path)?.[0] ?? null;

/** The message of an error, with the labels of the form instead of the names of the API: `window_ms` is "Window (ms)". */
export function translateMessage({ path, message }: FieldError): string {
  const parent = path.slice(0, path.lastIndexOf('.') + 1);
  return message.replace(/\b[a-z]+(_[a-z]+)+\b/g, (name) => {
    const field = FIELDS[parent + name] ?? FIELDS[name];
    return field === undefined ? name : `"${field[1]}"`;
  });
}
