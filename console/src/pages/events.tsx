import { type FormEvent, useEffect, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useMay, useSession } from '../api/session.ts';
import type { EventSummary } from '../api/types.ts';
import { navigate, setQuery, usePlace } from '../router.tsx';
import { Button, Card, Empty, PageHead } from '../ui/basics.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { showCount } from '../ui/format.ts';
import { placeOfId } from '../ui/ids.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { PublishDialog } from './publish.tsx';

const PERIODS = [
  ['', 'Any time'],
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
] as const;

export function EventsPage() {
  usePageTitle('Events');
  const may = useMay();
  const { shownTenant } = useSession();
  const { query } = usePlace();
  const [publishing, setPublishing] = useState(query.get('publish') === '1');
  const hours = query.get('hours') ?? '';
  // Fixed when it is chosen: a window that moves would be another list every second.
  const [since, setSince] = useState<string | undefined>(undefined);
  useEffect(
    () => setSince(hours === '' ? undefined : new Date(Date.now() - Number(hours) * 3_600_000).toISOString()),
    [hours],
  );
  const filter = {
    type: query.get('type'),
    has: query.get('has'),
    idempotency_key: query.get('idempotency_key'),
  };
  const path = withQuery('/v1/events', {
    ...filter,
    since: query.get('since') ?? since,
    until: query.get('until'),
    tenant: shownTenant,
  });
  const list = usePages<EventSummary>(path, ({ id }) => id, { pollMs: 3_000 });
  const filtered = Object.values(filter).some((value) => value) || hours !== '';
  return (
    <>
      <PageHead title="Events">
        {may.write && (
          <Button kind="primary" icon="send" onClick={() => setPublishing(true)}>
            Publish event
          </Button>
        )}
      </PageHead>
      <Card>
        <div className="filters">
          <Search />
          <FilterInput name="type" label="Type" placeholder="Type, e.g. order.created" />
          <FilterInput name="idempotency_key" label="Idempotency key" placeholder="Idempotency key" />
          <select
            className="input"
            aria-label="Time"
            value={hours}
            onChange={(event) => setQuery({ hours: event.target.value })}
          >
            {PERIODS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
          <select
            className="input"
            aria-label="Deliveries"
            value={filter.has ?? ''}
            onChange={(event) => setQuery({ has: event.target.value })}
          >
            <option value="">Any outcome</option>
            <option value="dead">With dead letters</option>
            <option value="waiting">Still waiting</option>
          </select>
          {filtered && (
            <Button kind="quiet" onClick={() => navigate('/events')}>
              Clear
            </Button>
          )}
        </div>
        <PagedTable
          label="Events"
          list={list}
          keyOf={({ id }) => id}
          linkOf={({ id }) => `/events/${id}`}
          columns={columnsFor(may.allTenants && shownTenant === null)}
          empty={
            filtered ? (
              <Empty
                icon="search"
                title="No event fits"
                actions={<Button onClick={() => navigate('/events')}>Show all events</Button>}
              >
                Types are compared exactly; idempotency keys are remembered for a day unless the operator
                chose otherwise.
              </Empty>
            ) : (
              <Empty
                icon="events"
                title="No event yet"
                actions={
                  may.write && (
                    <Button kind="primary" icon="send" onClick={() => setPublishing(true)}>
                      Publish event
                    </Button>
                  )
                }
              >
                Your application publishes them with POST /v1/events. You can also do it by hand.
              </Empty>
            )
          }
        />
      </Card>
      {publishing && (
        <PublishDialog
          onClose={() => {
            setPublishing(false);
            setQuery({ publish: null });
          }}
        />
      )}
    </>
  );
}

const columnsFor = (withTenant: boolean): Column<EventSummary>[] => [
  { name: 'Type', link: true, cell: ({ type }) => <span className="mono">{type}</span> },
  { name: 'Id', width: '30%', wideOnly: true, cell: ({ id }) => <span className="mono faint">{id}</span> },
  ...(withTenant
    ? [
        {
          name: 'Tenant',
          width: 120,
          wideOnly: true,
          cell: ({ tenant }: EventSummary) => <span className="soft">{tenant}</span>,
        },
      ]
    : []),
  {
    name: 'Idempotency key',
    width: '16%',
    wideOnly: true,
    cell: ({ idempotency_key }) => <span className="mono faint">{idempotency_key}</span>,
  },
  {
    name: 'Deliveries',
    width: 88,
    num: true,
    cell: ({ deliveries }) =>
      deliveries === 0 ? <span className="faint">none</span> : showCount(deliveries),
  },
  { name: 'Accepted', width: 104, num: true, cell: ({ created_at }) => <Ago at={created_at} /> },
];

/** An id leads straight to it. */
function Search() {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const go = (event: FormEvent): void => {
    event.preventDefault();
    const place = placeOfId(text);
    setWrong(place === null);
    if (place !== null) navigate(place.to);
  };
  return (
    <form onSubmit={go} className="row grow" style={{ flex: '2 1 240px' }}>
      <input
        className="input long mono"
        type="search"
        placeholder="Id: evt_…, dlv_…"
        aria-label="Find by id"
        aria-invalid={wrong}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setWrong(false);
        }}
      />
    </form>
  );
}
