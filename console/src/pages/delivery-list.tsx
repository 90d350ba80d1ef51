import { useMemo } from 'react';
import { withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useQuery } from '../api/query.ts';
import type { Delivery, Page } from '../api/types.ts';
import { setQuery, usePlace } from '../router.tsx';
import { Empty } from '../ui/basics.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { type Column, PagedTable, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import {
  CodeBadge,
  deliveryStatuses,
  reasonName,
  StatusBadge,
  statusName,
  WaitingFor,
  whyDead,
} from '../ui/words.tsx';

export const toDelivery = ({ event_id, id }: Pick<Delivery, 'event_id' | 'id'>): string =>
  `/events/${event_id}?delivery=${id}`;

const COLUMNS: readonly Column<Delivery>[] = [
  { name: 'Event', link: true, cell: ({ event_type }) => <span className="mono">{event_type}</span> },
  { name: 'Status', width: 104, cell: ({ status }) => <StatusBadge status={status} /> },
  {
    name: 'What happened',
    wideOnly: true,
    width: '34%',
    cell: (delivery) => (
      <span className="soft">
        <Outcome delivery={delivery} />
      </span>
    ),
  },
  {
    name: 'Answer',
    width: 92,
    wideOnly: true,
    cell: ({ last_status_code, attempts }) => (attempts === 0 ? null : <CodeBadge code={last_status_code} />),
  },
  {
    name: 'Attempts',
    width: 78,
    num: true,
    wideOnly: true,
    cell: ({ attempts, max_attempts }) => `${attempts}${max_attempts === null ? '' : ` / ${max_attempts}`}`,
  },
  { name: 'Accepted', width: 100, num: true, cell: ({ created_at }) => <Ago at={created_at} /> },
];

export function Outcome({ delivery }: { delivery: Delivery }) {
  const { status, last_error, reason } = delivery;
  if (status === 'pending' || status === 'retrying') return <WaitingFor delivery={delivery} />;
  if (status === 'dead') return <>{whyDead(last_error, reason)}</>;
  if (status === 'delivered')
    return <>{delivery.attempts > 1 ? `after ${delivery.attempts} attempts` : ''}</>;
  return <>{reasonName(reason)}</>;
}

const EMPTY = (
  <Empty icon="send" title="No deliveries here">
    They show up as events are published that this endpoint subscribes to.
  </Empty>
);

export function DeliveryList({ path, brief = false }: { path: string; brief?: boolean }) {
  return brief ? <Brief path={path} /> : <Full path={path} />;
}

function Brief({ path }: { path: string }) {
  const { data } = useQuery<Page<Delivery>>(withQuery(path, { limit: 8 }), { pollMs: 2_000 });
  return (
    <Table
      label="Recent deliveries"
      rows={data?.data}
      skeletonRows={8}
      keyOf={({ id }) => id}
      linkOf={toDelivery}
      columns={COLUMNS}
      empty={EMPTY}
    />
  );
}

function Full({ path }: { path: string }) {
  const { query } = usePlace();
  const status = query.get('status') ?? '';
  const type = query.get('type') ?? '';
  const full = useMemo(() => withQuery(path, { status, type }), [path, status, type]);
  const list = usePages<Delivery>(full, ({ id }) => id, { pollMs: 3_000 });
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
              {statusName(each)}
            </option>
          ))}
        </select>
        <FilterInput name="type" label="Event type" placeholder="Event type" />
      </div>
      <PagedTable
        label="Deliveries"
        list={list}
        keyOf={({ id }) => id}
        linkOf={toDelivery}
        columns={COLUMNS}
        empty={EMPTY}
      />
    </>
  );
}
