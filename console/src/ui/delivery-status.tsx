import type { Delivery } from '@posthorn/client';
import { Badge, type Tone } from './badge.tsx';
import { Countdown } from './time.tsx';

export type DeliveryStatus = Delivery['status'];

const STATUSES: Record<DeliveryStatus, readonly [string, Tone]> = {
  pending: ['Pending', 'info'],
  retrying: ['Retrying', 'warn'],
  delivered: ['Delivered', 'good'],
  dead: ['Dead', 'bad'],
  discarded: ['Discarded', 'mute'],
  skipped: ['Skipped', 'mute'],
};

export const deliveryStatuses = Object.keys(STATUSES) as DeliveryStatus[];
export const describeStatus = (status: DeliveryStatus): string => STATUSES[status][0];
export const getStatusTone = (status: DeliveryStatus): Tone => STATUSES[status][1];
export const isWaitingStatus = (status: DeliveryStatus): boolean =>
  status === 'pending' || status === 'retrying';

export function DeliveryStatusBadge({ status }: { status: DeliveryStatus }) {
  const [name, tone] = STATUSES[status];
  return <Badge tone={tone}>{name}</Badge>;
}

const WAIT_REASONS: Record<string, string> = {
  circuit_open: 'the circuit is open',
  rate_limited: 'the endpoint’s rate limit is reached',
  paused: 'the endpoint is paused',
  ordering: 'an earlier delivery must finish first',
};

/** "Next attempt in 12 s", "Waiting: the endpoint is paused". */
export function WaitReason({ delivery }: { delivery: Delivery }) {
  const { waiting_reason: waitingReason, next_attempt_at: at, attempts } = delivery;
  const reason = waitingReason === null ? undefined : WAIT_REASONS[waitingReason];
  const nextAttempt = attempts === 0 ? 'First attempt ' : 'Next attempt ';
  if (reason === undefined)
    return (
      <span>
        {at === null ? (
          'Due now'
        ) : (
          <>
            {nextAttempt}
            <Countdown at={at} />
          </>
        )}
      </span>
    );
  // The time of the next attempt is known only for an open circuit: that of its probe.
  const hasTime = at !== null && waitingReason === 'circuit_open';
  return (
    <span>
      Waiting: {reason}
      {hasTime && (
        <>
          {` · ${nextAttempt.toLowerCase()}`}
          <Countdown at={at} />
        </>
      )}
    </span>
  );
}
