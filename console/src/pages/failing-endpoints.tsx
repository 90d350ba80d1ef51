import type { Stats } from '@posthorn/client';
import { useMemo } from 'react';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { describeFailingState } from '../ui/endpoint-state.tsx';
import { formatCount, formatRate } from '../ui/format.ts';
import { TALL_ROW, Table } from '../ui/table.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

const MAX_ROWS = 10;

type EndpointRow = Stats['endpoints'][number];
const isFailing = ({ failures, dead, circuit }: EndpointRow): boolean =>
  failures > 0 || dead > 0 || circuit !== 'closed';
/** What somebody can act on first: open circuits, then those that still send, then paused and disabled endpoints. */
const rank = ({ enabled, paused, circuit }: EndpointRow): number =>
  !enabled ? 3 : paused ? 2 : circuit === 'closed' ? 1 : 0;
const compareFailing = (a: EndpointRow, b: EndpointRow): number =>
  rank(a) - rank(b) || b.failures - a.failures;

export function FailingEndpoints({ stats }: { stats: Stats | undefined }) {
  const rows = useMemo(
    () => stats?.endpoints.filter(isFailing).toSorted(compareFailing).slice(0, MAX_ROWS),
    [stats],
  );
  return (
    <Card title="Failing endpoints" actions={<Link to="/endpoints">All endpoints</Link>}>
      <Table
        label="Failing endpoints"
        rows={rows}
        skeletonRows={4}
        rowHeight={TALL_ROW}
        getKey={(row) => row.endpoint_id}
        getLink={(row) => `/endpoints/${row.endpoint_id}`}
        empty={
          <EmptyState icon="check" title="No failing endpoints">
            No request failed in this period.
          </EmptyState>
        }
        columns={[
          {
            name: 'Endpoint',
            isLink: true,
            render: (row) => {
              const { name, detail } = nameEndpoint(row);
              return <TwoLineCell first={name} second={detail ?? row.tenant} />;
            },
          },
          {
            name: 'State',
            width: 116,
            render: (row) => {
              const { name, tone } = describeFailingState(row);
              return <Badge tone={tone}>{name}</Badge>;
            },
          },
          {
            name: 'Failed',
            width: 74,
            isNumeric: true,
            hideOnPhone: true,
            render: (row) => formatCount(row.failures),
          },
          { name: 'Success', width: 80, isNumeric: true, render: (row) => formatRate(row.success_rate) },
          {
            name: 'Dead',
            width: 64,
            isNumeric: true,
            hideOnPhone: true,
            render: (row) => <span className={row.dead > 0 ? 'bad' : ''}>{formatCount(row.dead)}</span>,
          },
        ]}
      />
    </Card>
  );
}
