import type { Delivery, Page } from '@posthorn/client';
import { useMemo } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useQuery } from '../api/query.ts';
import { setQuery, useLocation } from '../router.tsx';
import {
  DeliveryStatusBadge,
  deliveryStatuses,
  describeStatus,
  isWaitingStatus,
  WaitReason,
} from '../ui/delivery-status.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { describeDeath, describeDiscard, describeReason } from '../ui/failure-text.ts';
import { FilterInput } from '../ui/filter-input.tsx';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { useQueryRange } from '../ui/query-range.ts';
import { type Column, PagedTable, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';

export const linkToDelivery = ({ event_id, id }: Pick<Delivery, 'event_id' | 'id'>): string =>
  `/events/${event_id}?delivery=${id}`;

const COLUMNS: readonly Column<Delivery>[] = [
  { name: 'Event', isLink: true, render: ({ event_type }) => <span className="mono">{event_type}</span> },
  { name: 'Status', width: 104, render: ({ status }) => <DeliveryStatusBadge status={status} /> },
  {
    name: 'Details',
    hideOnPhone: true,
    width: '34%',
    render: (delivery) => (
      <span className="soft">
        <Outcome delivery={delivery} />
      </span>
    ),
  },
  {
    name: 'Response',
    width: 100,
    hideOnPhone: true,
    render: ({ last_status_code, attempts }) =>
      attempts === 0 ? null : <HttpStatusBadge code={last_status_code} />,
  },
  {
    name: 'Attempts',
    width: 78,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ attempts, max_attempts }) => `${attempts}${max_attempts === null ? '' : ` / ${max_attempts}`}`,
  },
  { name: 'Accepted', width: 100, isNumeric: true, render: ({ created_at }) => <Ago at={created_at} /> },
];

function Outcome({ delivery }: { delivery: Delivery }) {
  const { status, attempts, last_error, reason } = delivery;
  if (isWaitingStatus(status)) return <WaitReason delivery={delivery} />;
  if (status === 'dead') return describeDeath(last_error, reason);
  if (status === 'delivered') return attempts > 1 ? `after ${attempts} attempts` : '';
  if (status === 'discarded') return describeDiscard(reason);
  return describeReason(reason);
}

const NO_DELIVERIES = (
  <EmptyState icon="send" title="No deliveries">
    A delivery appears here for every event that this endpoint subscribes to.
  </EmptyState>
);

/** The newest deliveries of a path, without filters. */
export function RecentDeliveryTable({ path }: { path: string }) {
  const { data } = useQuery<Page<Delivery>>(withQuery(path, { limit: 8 }), { pollMs: 2_000 });
  return (
    <Table
      label="Recent deliveries"
      rows={data?.data}
      skeletonRows={8}
      getKey={({ id }) => id}
      getLink={linkToDelivery}
      columns={COLUMNS}
      empty={NO_DELIVERIES}
    />
  );
}

/** All deliveries of a path, with filters by status and event type. */
export function DeliveryList({ path }: { path: string }) {
  const { query } = useLocation();
  const status = query.get('status') ?? '';
  const type = query.get('type') ?? '';
  const { range } = useQueryRange();
  const filteredPath = useMemo(
    () => withQuery(path, { status, type, ...range }),
    [path, status, type, range],
  );
  const list = usePagedList<Delivery>(filteredPath, ({ id }) => id, { pollMs: 3_000 });
  return (
    <>
      <div className="filters">
        <select
          className="input"
          aria-label="Status"
          value={status}
          onChange={(event) => setQuery({ status: event.target.value })}
        >
          <option value="">Any status</option>
          {deliveryStatuses.map((each) => (
            <option key={each} value={each}>
              {describeStatus(each)}
            </option>
          ))}
        </select>
        <FilterInput name="type" label="Event type" placeholder="Event type" />
        <TimeRangeFilter />
        <ExportButton path={filteredPath} name="deliveries" />
      </div>
      <PagedTable
        label="Deliveries"
        list={list}
        getKey={({ id }) => id}
        getLink={linkToDelivery}
        columns={COLUMNS}
        empty={NO_DELIVERIES}
      />
    </>
  );
}
