/** A batch: one request that carried several events. */
import type { Endpoint, SentBatch } from '@posthorn/client';
import { useQuery } from '../api/query.ts';
import { Link } from '../router.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { plural } from '../ui/format.ts';
import { ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { linkToDelivery } from './delivery-list.tsx';

type BatchMember = SentBatch['deliveries'][number];

const linkToMember = ({ id, event_id }: BatchMember): string => linkToDelivery({ id, event_id });

const COLUMNS: readonly Column<BatchMember>[] = [
  { name: 'Event', isLink: true, render: ({ event_id }) => <span className="mono">{event_id}</span> },
  { name: 'Delivery', hideOnPhone: true, render: ({ id }) => <span className="mono soft">{id}</span> },
];

export function BatchPage({ id }: { id: string }) {
  usePageTitle('Batch');
  const { data, error, refresh } = useQuery<SentBatch>(`/v1/batches/${id}`);
  const endpoint = useQuery<Endpoint>(data === undefined ? null : `/v1/endpoints/${data.endpoint_id}`).data;
  if (data === undefined && error !== null)
    return <ErrorPage title="Batch" error={error} onRetry={refresh} />;
  return (
    <>
      <PageHeader
        crumb={<Link to="/events">Events</Link>}
        title="Batch"
        below={
          <div className="row wrap small faint" style={{ minHeight: 24 }}>
            <CopyButton text={id} />
            {data !== undefined && (
              <>
                <span>
                  to{' '}
                  <Link to={`/endpoints/${data.endpoint_id}`}>
                    {endpoint === undefined ? data.endpoint_id : nameEndpoint(endpoint).name}
                  </Link>
                </span>
                <Ago at={data.created_at} />
                <span>{plural(data.deliveries.length, 'event')} in one request</span>
              </>
            )}
          </div>
        }
      />
      <Card>
        <Table
          label="Events of the batch"
          rows={data?.deliveries}
          skeletonRows={5}
          getKey={({ id: deliveryId }) => deliveryId}
          getLink={linkToMember}
          columns={COLUMNS}
          empty={null}
        />
      </Card>
    </>
  );
}

/** How many siblings are listed before the link to the whole batch. */
const LISTED_SIBLINGS = 5;

/** The batch that carried an attempt, and the other events in it. */
export function BatchSiblings({ batchId, deliveryId }: { batchId: string; deliveryId: string }) {
  const { data } = useQuery<SentBatch>(`/v1/batches/${batchId}`);
  const siblings = data?.deliveries.filter(({ id }) => id !== deliveryId) ?? [];
  return (
    <div className="row wrap small soft">
      <span>
        Sent in{' '}
        <Link className="mono break-anywhere" to={`/batches/${batchId}`}>
          {batchId}
        </Link>
        {data !== undefined &&
          (siblings.length === 0 ? ', alone' : ` with ${plural(siblings.length, 'other event')}:`)}
      </span>
      {siblings.slice(0, LISTED_SIBLINGS).map((sibling) => (
        <Link key={sibling.id} className="mono" to={linkToMember(sibling)}>
          {sibling.event_id}
        </Link>
      ))}
      {siblings.length > LISTED_SIBLINGS && (
        <Link to={`/batches/${batchId}`}>and {siblings.length - LISTED_SIBLINGS} more</Link>
      )}
    </div>
  );
}
