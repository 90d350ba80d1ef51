import { useState } from 'react';
import { call } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { asText, useQuery } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Delivery, DeliveryStatus, EventSummary } from '../api/types.ts';
import { Link, usePlace } from '../router.tsx';
import { Badge, Button, Card, Copy, Empty, Failure, PageHead, Skeleton } from '../ui/basics.tsx';
import { Headers, Json } from '../ui/code.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { plural, showCount } from '../ui/format.ts';
import { rawMember } from '../ui/json-text.ts';
import { Ago, At } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast, toastError } from '../ui/toasts.tsx';
import { StatusBadge } from '../ui/words.tsx';
import { DeliveryCard } from './delivery-card.tsx';

const FAILED: readonly DeliveryStatus[] = ['dead', 'skipped', 'discarded'];
const WAITING: readonly DeliveryStatus[] = ['pending', 'retrying'];

export function EventPage({ id }: { id: string }) {
  const answer = useQuery<string>(asText(`/v1/events/${id}`));
  const event = answer.data === undefined ? undefined : (JSON.parse(answer.data) as EventSummary);
  usePageTitle(event?.type ?? 'Event');
  const chosen = usePlace().query.get('delivery');
  const [waits, setWaits] = useState(true);
  const list = usePages<Delivery>(`/v1/events/${id}/deliveries`, (delivery) => delivery.id, {
    pollMs: waits ? 1_000 : 5_000,
  });
  const waitsNow = list.rows?.some(({ status }) => WAITING.includes(status)) ?? true;
  if (waitsNow !== waits) setWaits(waitsNow);

  if (answer.data === undefined && answer.error !== null)
    return (
      <Card>
        <h1 className="sr-only">Event</h1>
        <Failure error={answer.error} retry={answer.refresh} />
      </Card>
    );
  const rows = list.rows?.toSorted((a, b) => rank(a, chosen) - rank(b, chosen));
  return (
    <>
      <PageHead
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
            <Copy text={id} />
            {event !== undefined && <span>{event.tenant}</span>}
            {event !== undefined && <Ago at={event.created_at} />}
            <Summary rows={list.rows} />
          </div>
        }
      >
        {rows !== undefined && <ReplayButtons id={id} rows={rows} refresh={list.refresh} />}
      </PageHead>
      <div className="grid aside event">
        <div className="grid">
          {list.rows === undefined && list.error !== null && (
            <Failure error={list.error} retry={list.refresh} />
          )}
          {rows?.length === 0 && (
            <Card>
              <Empty icon="endpoint" title="No endpoint got this event">
                None was subscribed to its type and channel when it was accepted. Events are not sent to
                endpoints that are added later.
              </Empty>
            </Card>
          )}
          {rows === undefined && list.error === null && (
            <Card>
              <div className="card-body" style={{ minHeight: 140 }}>
                <Skeleton width="50%" />
              </div>
            </Card>
          )}
          {rows?.map((delivery) => (
            <DeliveryCard
              key={delivery.id}
              delivery={delivery}
              open={isOpen(delivery, rows, chosen)}
              refresh={list.refresh}
            />
          ))}
          {list.hasMore && (
            <Button onClick={list.loadMore} disabled={list.loadingMore}>
              Load more deliveries
            </Button>
          )}
        </div>
        <EventFacts event={event} text={answer.data} />
      </div>
    </>
  );
}

/** The one that was asked for, then what needs somebody. */
function rank(delivery: Delivery, chosen: string | null): number {
  if (delivery.id === chosen) return 0;
  return 1 + ['dead', 'retrying', 'pending', 'skipped', 'discarded', 'delivered'].indexOf(delivery.status);
}

const OPEN_AT_MOST = 5;

function isOpen(delivery: Delivery, rows: readonly Delivery[], chosen: string | null): boolean {
  if (chosen !== null) return delivery.id === chosen;
  return rows.length <= OPEN_AT_MOST || delivery.id === rows[0]?.id;
}

function Summary({ rows }: { rows: readonly Delivery[] | undefined }) {
  if (rows === undefined || rows.length === 0) return null;
  const counts = new Map<DeliveryStatus, number>();
  for (const { status } of rows) counts.set(status, (counts.get(status) ?? 0) + 1);
  return (
    <span className="row wrap" style={{ gap: 6 }}>
      {[...counts].map(([status, count]) => (
        <span key={status} className="row" style={{ gap: 4 }}>
          {counts.size > 1 || count > 1 ? showCount(count) : ''} <StatusBadge status={status} />
        </span>
      ))}
    </span>
  );
}

function ReplayButtons({
  id,
  rows,
  refresh,
}: {
  id: string;
  rows: readonly Delivery[];
  refresh: () => Promise<void>;
}) {
  const may = useMay();
  const [asking, setAsking] = useState(false);
  if (!may.write || rows.length === 0) return null;
  const failed = rows.filter(({ status }) => FAILED.includes(status)).length;
  const replay = async (status?: readonly DeliveryStatus[]): Promise<void> => {
    const { deliveries, skipped } = await call<{ deliveries: number; skipped: number }>(
      'POST',
      `/v1/events/${id}/replay`,
      status === undefined ? {} : { status },
    );
    toast(
      deliveries === 0
        ? 'Nothing could be replayed: is the endpoint enabled?'
        : `Replaying ${plural(deliveries, 'delivery', 'deliveries')}${
            skipped === 0 ? '' : `; ${skipped} not, where the endpoint is disabled or deleted`
          }`,
      { tone: deliveries === 0 ? 'bad' : 'good' },
    );
    await refresh();
  };
  return (
    <>
      {failed > 0 && (
        <Button kind="primary" icon="replay" onClick={() => void replay(FAILED).catch(toastError)}>
          {failed === 1 ? 'Replay' : `Replay ${failed} failed`}
        </Button>
      )}
      <Button icon="replay" onClick={() => setAsking(true)}>
        Replay all…
      </Button>
      {asking && (
        <FormDialog
          title="Send this event again?"
          submit="Replay all"
          onClose={() => setAsking(false)}
          onSubmit={async () => {
            await replay();
            setAsking(false);
          }}
        >
          <p className="soft">
            It goes to {plural(rows.length, 'endpoint')} again, also to those that have it already, with the
            same webhook-id. What waits becomes due now.
          </p>
        </FormDialog>
      )}
    </>
  );
}

function EventFacts({ event, text }: { event: EventSummary | undefined; text: string | undefined }) {
  const data = text === undefined ? null : rawMember(text, 'data');
  return (
    <div className="grid">
      <Card title="Payload">
        <div className="card-body">
          {data === null ? <Skeleton width="80%" /> : <Json text={data} label="payload" />}
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
          {event?.schema_version != null && (
            <>
              <dt>Schema version</dt>
              <dd>{event.schema_version}</dd>
            </>
          )}
          {event !== undefined && event.channels.length > 0 && (
            <>
              <dt>Channels</dt>
              <dd className="row wrap">
                {event.channels.map((channel) => (
                  <Badge key={channel}>{channel}</Badge>
                ))}
              </dd>
            </>
          )}
          {event?.deliver_at != null && (
            <>
              <dt>Deliver at</dt>
              <dd>
                <At at={event.deliver_at} />
              </dd>
            </>
          )}
        </dl>
        {event !== undefined && Object.keys(event.headers).length > 0 && (
          <div className="card-body">
            <Headers headers={event.headers} />
          </div>
        )}
      </Card>
    </div>
  );
}
