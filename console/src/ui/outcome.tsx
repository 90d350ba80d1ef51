import type { Event as EventSummary } from '@posthorn/client';
import { type DeliveryStatus, describeStatus, getStatusTone } from './delivery-status.tsx';
import { formatCount, plural } from './format.ts';

/** What needs attention comes first, because a narrow column cuts the rest off. */
const ORDER: readonly DeliveryStatus[] = ['dead', 'retrying', 'pending', 'delivered', 'skipped', 'discarded'];

/** Why an event was sent to no endpoint. */
const UNSENT: Record<NonNullable<EventSummary['unmatched_reason']>, string> = {
  no_endpoint: 'No endpoint',
  filtered: 'Filtered out',
  disabled: 'Endpoints disabled',
};

/** What became of an event: "1 dead · 1 retrying · 3 delivered". */
export function OutcomeSummary({ event }: { event: EventSummary }) {
  const { outcome, deliveries } = event;
  if (outcome === null) return <span className="faint">{plural(deliveries, 'delivery', 'deliveries')}</span>;
  const shown = ORDER.filter((status) => outcome[status] > 0);
  if (shown.length === 0)
    return (
      <span className="faint">
        {deliveries === 0 ? UNSENT[event.unmatched_reason ?? 'no_endpoint'] : 'No longer stored'}
      </span>
    );
  return (
    <span className="outcome">
      {shown.map((status) => (
        <span key={status} className={`outcome-part ${getStatusTone(status)}`}>
          {formatCount(outcome[status])} {describeStatus(status).toLowerCase()}
        </span>
      ))}
    </span>
  );
}
