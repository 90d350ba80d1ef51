import type { Endpoint, Health } from '@posthorn/client';
import { Badge, type Tone } from './badge.tsx';

export function CircuitBadge({ circuit }: { circuit: Health['circuit'] }) {
  if (circuit === 'closed') return <Badge tone="good">Closed</Badge>;
  return circuit === 'open' ? <Badge tone="bad">Open</Badge> : <Badge tone="warn">Probing</Badge>;
}

const DISABLED_REASONS: Record<string, string> = {
  manual: 'through the API or the console',
  gone: 'it answered 410 Gone',
  failing: 'every request failed for days',
  dead_letters: 'too many deliveries died',
};

interface EndpointState {
  readonly name: string;
  readonly tone: Tone;
  /** '' if the name says it all. */
  readonly explanation: string;
}

/** The most important fact about an endpoint. */
export function describeEndpointState(endpoint: Endpoint): EndpointState {
  const { enabled, paused, disabled_reason: reason, health } = endpoint;
  if (!enabled) {
    const explanation = reason === null ? '' : (DISABLED_REASONS[reason] ?? reason);
    return { name: 'Disabled', tone: 'mute', explanation };
  }
  if (paused) return { name: 'Paused', tone: 'info', explanation: 'nothing is sent until you resume it' };
  if (health.circuit === 'open')
    return { name: 'Circuit open', tone: 'bad', explanation: 'nothing is sent until a probe succeeds' };
  if (health.circuit === 'half_open')
    return { name: 'Probing', tone: 'warn', explanation: 'one request at a time' };
  if (health.consecutive_failures > 0 || (health.success_rate ?? 1) < 0.95)
    return { name: 'Failing', tone: 'warn', explanation: '' };
  return { name: 'Healthy', tone: 'good', explanation: '' };
}
