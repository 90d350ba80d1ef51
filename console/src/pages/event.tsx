import type { Delivery, EventWithData as EventSummary } from '@posthorn/client';
import { useState } from 'react';
import { type PagedList, usePagedList } from '../api/paged-list.ts';
import { asText, useQuery } from '../api/query.ts';
import { Link, useLocation } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { HeaderList, JsonBlock } from '../ui/code-block.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { type DeliveryStatus, DeliveryStatusBadge, isWaitingStatus } from '../ui/delivery-status.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { formatCount } from '../ui/format.ts';
import { sliceMember } from '../ui/json-text.ts';
import { ErrorNotice, ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { Ago, At } from '../ui/time.tsx';
import { DeliveryCard } from './delivery-card.tsx';
import { EventReplayButtons } from './event-replay.tsx';

export function EventPage({ id }: { id: string }) {
  const response = useQuery<string>(asText(`/v1/events/${id}`));
  const event = response.data === undefined ? undefined : (JSON.parse(response.data) as EventSummary);
  usePageTitle(event?.type ?? 'Event');
  const deliveries = useDeliveries(id);
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
            <StatusSummary deliveries={deliveries.rows} />
            {event !== undefined && event.unwritten_deliveries > 0 && (
              <span>{formatCount(event.unwritten_deliveries)} deliveries are still being queued</span>
            )}
          </div>
        }
      >
        {deliveries.rows !== undefined && (
          <EventReplayButtons id={id} deliveries={deliveries.rows} onReplay={deliveries.refresh} />
        )}
      </PageHeader>
      <div className="grid aside event">
        <DeliveryCards list={deliveries} />
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

/** The cards of the deliveries: the one that the URL names first, then those that need attention. */
function DeliveryCards({ list }: { list: PagedList<Delivery> }) {
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
          No endpoint matched its type, channels and content when it was accepted. Posthorn does not send it
          to endpoints that you add later.
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

/** How many deliveries have each status. */
function StatusSummary({ deliveries }: { deliveries: readonly Delivery[] | undefined }) {
  if (deliveries === undefined || deliveries.length === 0) return null;
  const counts = new Map<DeliveryStatus, number>();
  for (const { status } of deliveries) counts.set(status, (counts.get(status) ?? 0) + 1);
  return (
    <span className="row wrap" style={{ gap: 6 }}>
      {[...counts].map(([status, count]) => (
        <span key={status} className="row" style={{ gap: 4 }}>
          {deliveries.length > 1 && formatCount(count)} <DeliveryStatusBadge status={status} />
        </span>
      ))}
    </span>
  );
}

/** `text` is the JSON of the response: the payload is cut out of it, so that every digit stays. */
function EventFacts({ event, text }: { event: EventSummary | undefined; text: string | undefined }) {
  const payload = text === undefined ? null : sliceMember(text, 'data');
  return (
    <div className="grid">
      <Card title="Payload">
        <div className="card-body">
          {payload === null ? <Skeleton width="80%" /> : <JsonBlock text={payload} label="payload" />}
        </div>
      </Card>
      <Card title="Event">
        <dl className="facts card-body">
          <dt>Accepted</dt>
          <dd>{event === undefined ? <Skeleton /> : <At at={event.created_at} />}</dd>
          <dt>Tenant</dt>
          <dd>{event?.tenant ?? <Skeleton />}</dd>
          <dt>Idempotency key</dt>
          <dd className="mono">{event?.idempotency_key ?? '–'}</dd>
          {event !== undefined && <OptionalFacts event={event} />}
        </dl>
        {event !== undefined && Object.keys(event.headers).length > 0 && (
          <div className="card-body">
            <HeaderList headers={event.headers} />
          </div>
        )}
      </Card>
    </div>
  );
}

function OptionalFacts({ event: { schema_version, channels, deliver_at } }: { event: EventSummary }) {
  return (
    <>
      {schema_version !== null && (
        <>
          <dt>Schema version</dt>
          <dd>{schema_version}</dd>
        </>
      )}
      {channels.length > 0 && (
        <>
          <dt>Channels</dt>
          <dd className="row wrap">
            {channels.map((channel) => (
              <Badge key={channel}>{channel}</Badge>
            ))}
          </dd>
        </>
      )}
      {deliver_at !== null && (
        <>
          <dt>Deliver at</dt>
          <dd>
            <At at={deliver_at} />
          </dd>
        </>
      )}
    </>
  );
}
