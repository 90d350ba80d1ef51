import type { Endpoint, Health } from '@posthorn/client';
import { Badge, type Tone } from './badge.tsx';

/** The circuit of an endpoint that sends nothing is grey: it says nothing about the receiver. */
export function CircuitBadge({ circuit, isIdle = false }: { circuit: Health['circuit']; isIdle?: boolean }) {
  if (circuit === 'closed') return <Badge tone={isIdle ? 'mute' : 'good'}>Closed</Badge>;
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

type Switches = Pick<Endpoint, 'enabled' | 'paused'> & { circuit: Health['circuit'] };

/** The state that stops or slows an endpoint down; null if nothing does. */
function describeStop({ enabled, paused, circuit }: Switches): EndpointState | null {
  if (!enabled) return { name: 'Disabled', tone: 'mute', explanation: '' };
  if (paused) return { name: 'Paused', tone: 'info', explanation: 'nothing is sent until you resume it' };
  if (circuit === 'open')
    return { name: 'Circuit open', tone: 'bad', explanation: 'nothing is sent until a probe succeeds' };
  if (circuit === 'half_open') return { name: 'Probing', tone: 'warn', explanation: 'one request at a time' };
  return null;
}

const FAILING: EndpointState = { name: 'Failing', tone: 'warn', explanation: '' };

/** The most important fact about an endpoint. */
export function describeEndpointState(endpoint: Endpoint): EndpointState {
  const { enabled, paused, disabled_reason: reason, health } = endpoint;
  const stop = describeStop({ enabled, paused, circuit: health.circuit });
  if (stop !== null)
    return enabled || reason === null ? stop : { ...stop, explanation: DISABLED_REASONS[reason] ?? reason };
  if (health.consecutive_failures > 0 || (health.success_rate ?? 1) < 0.95) return FAILING;
  if (health.success_rate === null)
    return { name: 'Idle', tone: 'mute', explanation: 'no request in the last 24 hours' };
  return { name: 'Healthy', tone: 'good', explanation: '' };
}

/** The state of an endpoint that had failures. */
export const describeFailingState = (endpoint: Switches): EndpointState => describeStop(endpoint) ?? FAILING;
