import type { Delivery, EventOutcome, EventWithData as EventSummary } from '@posthorn/client';
import { useState } from 'react';
import { type PagedList, usePagedList } from '../api/paged-list.ts';
import { asText, useQuery } from '../api/query.ts';
import { Link, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { type DeliveryStatus, DeliveryStatusBadge, isWaitingStatus } from '../ui/delivery-status.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { formatCount } from '../ui/format.ts';
import { ErrorNotice, ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { Ago } from '../ui/time.tsx';
import { DeliveryCard } from './delivery-card.tsx';
import { EventFacts } from './event-facts.tsx';
import { EventReplayButtons } from './event-replay.tsx';

export function EventPage({ id }: { id: string }) {
  const response = useQuery<string>(asText(`/v1/events/${id}`));
  const event = response.data === undefined ? undefined : (JSON.parse(response.data) as EventSummary);
  usePageTitle(event?.type ?? 'Event');
  const deliveries = useDeliveries(id);
  const counts = countStatuses(deliveries, event);
  if (response.data === undefined && response.error !== null)
    return <ErrorPage title="Event" error={response.error} onRetry={response.refresh} />;
  return (
    <>
      <PageHeader
        crumb={<Link to="/events">Events</Link>}
        title={
          event === undefined ? (
            <Skeleton width={260} label="Event" />
          ) : (
            <span className="mono" style={{ fontSize: 18 }}>
              {event.type}
            </span>
          )
        }
        below={
          <div className="row wrap small faint" style={{ minHeight: 24 }}>
            <CopyButton text={id} />
            {event !== undefined && <span>{event.tenant}</span>}
            {event !== undefined && <Ago at={event.created_at} />}
            <StatusSummary counts={counts} />
            {event !== undefined && event.unwritten_deliveries > 0 && (
              <span>{formatCount(event.unwritten_deliveries)} deliveries are still being queued</span>
            )}
          </div>
        }
      >
        {deliveries.rows !== undefined && (
          <EventReplayButtons
            id={id}
            deliveries={deliveries.rows}
            counts={counts}
            onReplay={async () => {
              await Promise.all([deliveries.refresh(), response.refresh()]);
            }}
          />
        )}
      </PageHeader>
      <div className="grid aside event">
        <DeliveryCards list={deliveries} unmatchedReason={event?.unmatched_reason ?? null} />
        <EventFacts event={event} text={response.data} />
      </div>
    </>
  );
}

/** The deliveries of an event, polled faster while one of them waits. */
function useDeliveries(eventId: string): PagedList<Delivery> {
  const [isWaiting, setWaiting] = useState(true);
  const list = usePagedList<Delivery>(`/v1/events/${eventId}/deliveries`, ({ id }) => id, {
    pollMs: isWaiting ? 1_000 : 5_000,
  });
  const isWaitingNow = list.rows?.some(({ status }) => isWaitingStatus(status)) ?? true;
  if (isWaitingNow !== isWaiting) setWaiting(isWaitingNow);
  return list;
}

const STATUS_ORDER: readonly DeliveryStatus[] = [
  'dead',
  'retrying',
  'pending',
  'skipped',
  'discarded',
  'delivered',
];
/** With more deliveries than this, only the first card shows its attempts. */
const MAX_OPEN_CARDS = 5;

const NOT_LATER = 'Posthorn does not send it to endpoints that you add or change later.';
/** Why an event has no deliveries. */
const UNMATCHED: Record<NonNullable<EventSummary['unmatched_reason']> | 'unknown', string> = {
  no_endpoint: `No endpoint subscribed to its type when it was accepted. ${NOT_LATER}`,
  filtered: `Endpoints subscribe to its type, but their channels or filters left it out. ${NOT_LATER}`,
  disabled: 'All endpoints that match it were disabled when it was accepted.',
  unknown: 'It has no deliveries, or they are no longer stored.',
};

interface DeliveryCardsProps {
  list: PagedList<Delivery>;
  unmatchedReason: EventSummary['unmatched_reason'];
}

/** The cards of the deliveries: the one that the URL names first, then those that need attention. */
function DeliveryCards({ list, unmatchedReason }: DeliveryCardsProps) {
  const linkedId = useLocation().query.get('delivery');
  if (list.rows === undefined)
    return list.error === null ? (
      <Card>
        <div className="card-body" style={{ minHeight: 140 }}>
          <Skeleton width="50%" />
        </div>
      </Card>
    ) : (
      <ErrorNotice error={list.error} onRetry={list.refresh} />
    );
  if (list.rows.length === 0)
    return (
      <Card>
        <EmptyState icon="endpoint" title="No endpoint received this event">
          {UNMATCHED[unmatchedReason ?? 'unknown']}
        </EmptyState>
      </Card>
    );
  const rank = ({ id, status }: Delivery): number => (id === linkedId ? -1 : STATUS_ORDER.indexOf(status));
  const rows = list.rows.toSorted((a, b) => rank(a) - rank(b));
  const isOpen = ({ id }: Delivery): boolean =>
    linkedId !== null ? id === linkedId : rows.length <= MAX_OPEN_CARDS || id === rows[0]!.id;
  return (
    <div className="grid">
      {rows.map((delivery) => (
        <DeliveryCard
          key={delivery.id}
          delivery={delivery}
          isInitiallyOpen={isOpen(delivery)}
          onChange={list.refresh}
        />
      ))}
      {list.hasMore && (
        <Button onClick={list.loadMore} disabled={list.isLoadingMore}>
          Load more deliveries
        </Button>
      )}
    </div>
  );
}

/** How many deliveries have each status: the loaded ones, or if there are more, what the event says. */
function countStatuses(list: PagedList<Delivery>, event: EventSummary | undefined): EventOutcome {
  if (list.hasMore && event?.outcome) return event.outcome;
  const counts: EventOutcome = { delivered: 0, retrying: 0, pending: 0, dead: 0, skipped: 0, discarded: 0 };
  for (const { status } of list.rows ?? []) counts[status] += 1;
  return counts;
}

function StatusSummary({ counts }: { counts: EventOutcome }) {
  const shown = STATUS_ORDER.filter((status) => counts[status] > 0);
  const total = shown.reduce((sum, status) => sum + counts[status], 0);
  return (
    <span className="row wrap" style={{ gap: 6 }}>
      {shown.map((status) => (
        <span key={status} className="row" style={{ gap: 4 }}>
          {total > 1 && formatCount(counts[status])} <DeliveryStatusBadge status={status} />
        </span>
      ))}
    </span>
  );
}
