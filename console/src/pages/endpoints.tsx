import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { Endpoint, Stats } from '../api/types.ts';
import { Badge, Card, Empty, LinkButton, PageHead } from '../ui/basics.tsx';
import { Sparkline } from '../ui/chart.tsx';
import { shortUrl, showCount, showMs, showRate } from '../ui/format.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { usePageTitle } from '../ui/title.ts';
import { endpointState } from '../ui/words.tsx';

export function EndpointsPage() {
  usePageTitle('Endpoints');
  const may = useMay();
  const { shownTenant } = useSession();
  const [text, setText] = useState('');
  const list = usePages<Endpoint>(withQuery('/v1/endpoints', { tenant: shownTenant }), ({ id }) => id, {
    pollMs: 5_000,
  });
  const needle = text.trim().toLowerCase();
  const fits = ({ url, description, id, tenant, events }: Endpoint): boolean =>
    [url, description, id, tenant, ...events].some((each) => each.toLowerCase().includes(needle));
  const shown = needle === '' ? list : { ...list, rows: list.rows?.filter(fits) };
  return (
    <>
      <PageHead title="Endpoints">
        {may.write && (
          <LinkButton to="/endpoints/new" kind="primary" icon="plus">
            Add endpoint
          </LinkButton>
        )}
      </PageHead>
      <Card>
        <div className="filters">
          <input
            className="input long"
            type="search"
            placeholder="Filter by address, description, tenant or event type"
            aria-label="Filter endpoints"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
        <PagedTable
          label="Endpoints"
          list={shown}
          keyOf={({ id }) => id}
          linkOf={({ id }) => `/endpoints/${id}`}
          rowHeight={51}
          empty={
            needle === '' ? <NoEndpoints /> : <Empty icon="search" title={`No endpoint fits “${text}”`} />
          }
          columns={columnsFor(may.allTenants && shownTenant === null)}
        />
      </Card>
    </>
  );
}

function NoEndpoints() {
  const may = useMay();
  return (
    <Empty
      icon="endpoint"
      title="No endpoint yet"
      actions={
        may.write && (
          <>
            <LinkButton to="/endpoints/new" kind="primary" icon="plus">
              Add endpoint
            </LinkButton>
            {may.inbox && <LinkButton to="/start">Try it without a receiver</LinkButton>}
          </>
        )
      }
    >
      An endpoint is an address that gets the events it subscribes to.
    </Empty>
  );
}

const columnsFor = (withTenant: boolean): Column<Endpoint>[] => [
  {
    name: 'Endpoint',
    link: true,
    cell: (endpoint) => (
      <span className="cell-two">
        <span className="truncate">{shortUrl(endpoint.url)}</span>
        <span className="truncate small faint">{endpoint.description || endpoint.events.join(', ')}</span>
      </span>
    ),
  },
  ...(withTenant
    ? [
        {
          name: 'Tenant',
          width: 120,
          wideOnly: true,
          cell: (endpoint: Endpoint) => <span className="soft">{endpoint.tenant}</span>,
        },
      ]
    : []),
  {
    name: 'State',
    width: 116,
    cell: (endpoint) => {
      const [name, tone, why] = endpointState(endpoint);
      return (
        <span title={why}>
          <Badge tone={tone}>{name}</Badge>
        </span>
      );
    },
  },
  { name: 'Last 24 h', width: 120, wideOnly: true, cell: (endpoint) => <DaySpark id={endpoint.id} /> },
  {
    name: 'Success',
    width: 80,
    num: true,
    wideOnly: true,
    cell: ({ health }) => showRate(health.success_rate),
  },
  { name: 'p95', width: 80, num: true, wideOnly: true, cell: ({ health }) => showMs(health.p95_ms) },
  { name: 'Waiting', width: 80, num: true, wideOnly: true, cell: ({ health }) => showCount(health.waiting) },
  {
    name: 'Dead',
    width: 72,
    num: true,
    cell: ({ health }) => <span className={health.dead > 0 ? 'bad' : ''}>{showCount(health.dead)}</span>,
  },
];

function DaySpark({ id }: { id: string }) {
  const { data } = useQuery<Stats>(`/v1/endpoints/${id}/stats?window=24h`);
  if (data?.series === undefined) return null;
  return (
    <Sparkline
      values={data.series.map(({ attempts }) => attempts)}
      label={`${showCount(data.attempts)} requests in 24 hours`}
    />
  );
}
