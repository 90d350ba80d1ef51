import type { Pin } from '@posthorn/client';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useSession } from '../api/session.ts';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { useEndpointNames } from '../ui/endpoint-name.ts';
import { type Column, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { At } from '../ui/time.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

/** The endpoints that pin a version of the event type: whom to tell before a version ends. */
export function PinsCard({ path }: { path: string }) {
  const { selectedTenant } = useSession();
  const getName = useEndpointNames();
  const list = usePagedList<Pin>(
    withQuery(`${path}/pins`, { tenant: selectedTenant }),
    ({ endpoint_id }) => endpoint_id,
  );
  const columns: readonly Column<Pin>[] = [
    {
      name: 'Endpoint',
      isLink: true,
      render: ({ endpoint_id, tenant }) => {
        const { name, detail } = getName(endpoint_id);
        return <TwoLineCell first={name} second={detail === null ? tenant : `${tenant} · ${detail}`} />;
      },
    },
    { name: 'Pins', width: 120, render: ({ api_version }) => <span className="mono">{api_version}</span> },
    {
      name: 'Gets',
      width: 220,
      hideOnPhone: true,
      render: ({ version, status }) => (version === null ? 'as published' : `${version} (${status})`),
    },
    {
      name: 'Sunset',
      width: 180,
      hideOnPhone: true,
      render: ({ sunset_at }) => (sunset_at === null ? '–' : <At at={sunset_at} />),
    },
  ];
  return (
    <Card title="Endpoints with a pinned version">
      <PagedTable
        label="Endpoints with a pinned version"
        list={list}
        getKey={({ endpoint_id }) => endpoint_id}
        getLink={({ endpoint_id }) => `/endpoints/${endpoint_id}?tab=configuration`}
        rowHeight={TALL_ROW}
        columns={columns}
        empty={
          <EmptyState icon="endpoint" title="No endpoint pins a version">
            Endpoints without an API version get events as they were published.
          </EmptyState>
        }
      />
    </Card>
  );
}
