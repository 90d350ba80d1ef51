import { useMemo, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { DeadLetterGroup, Delivery, Page } from '../api/types.ts';
import { navigate, setQuery, usePlace } from '../router.tsx';
import { Badge, Button, Card, Empty, Failure, PageHead } from '../ui/basics.tsx';
import { plural, shortUrl, showCount } from '../ui/format.ts';
import { type Column, PagedTable, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { CodeBadge, reasonName, whyDead } from '../ui/words.tsx';
import { BulkDialog, type BulkFilter } from './bulk.tsx';
import { toDelivery } from './delivery-list.tsx';
import { TaskProgress } from './task-progress.tsx';

export function DeadLettersPage() {
  usePageTitle('Dead letters');
  const { query } = usePlace();
  const { shownTenant } = useSession();
  const filter = useMemo(
    (): BulkFilter => ({
      ...(shownTenant !== null && { tenant: shownTenant }),
      ...pick(query, 'endpoint_id'),
      ...pick(query, 'reason'),
      ...pick(query, 'type'),
    }),
    [query, shownTenant],
  );
  const narrowed =
    query.has('endpoint_id') || query.has('reason') || query.has('type') || query.get('view') === 'list';
  return (
    <>
      <PageHead
        title="Dead letters"
        below={
          <p className="soft">
            Deliveries that were given up. They wait here until somebody replays or discards them.
          </p>
        }
      >
        {narrowed ? (
          <Button onClick={() => navigate('/dead-letters')}>All groups</Button>
        ) : (
          <Button onClick={() => setQuery({ view: 'list' })}>Show as a list</Button>
        )}
      </PageHead>
      <div className="grid">
        <TaskProgress />
        {narrowed ? <Letters filter={filter} /> : <Groups />}
      </div>
    </>
  );
}

const pick = (query: URLSearchParams, name: string): Record<string, string> => {
  const value = query.get(name);
  return value === null || value === '' ? {} : { [name]: value };
};

type Order = { kind: 'replay' | 'discard'; filter: BulkFilter; about: string };

function Groups() {
  const may = useMay();
  const { shownTenant } = useSession();
  const [order, setOrder] = useState<Order | null>(null);
  const groups = useQuery<Page<DeadLetterGroup>>(
    withQuery('/v1/dead-letters/groups', { tenant: shownTenant }),
    { pollMs: 3_000 },
  );
  if (groups.data === undefined && groups.error !== null) {
    if (groups.error.status === 404)
      return <Letters filter={shownTenant === null ? {} : { tenant: shownTenant }} />;
    return (
      <Card>
        <Failure error={groups.error} retry={groups.refresh} />
      </Card>
    );
  }
  const ask = (kind: Order['kind'], group: DeadLetterGroup): void =>
    setOrder({
      kind,
      filter: { tenant: group.tenant, endpoint_id: group.endpoint_id, reason: group.reason },
      about: `${shortUrl(group.url ?? group.endpoint_id)}, ${reasonName(group.reason)}`,
    });
  const columns: Column<DeadLetterGroup>[] = [
    {
      name: 'Endpoint',
      link: true,
      cell: (group) => (
        <span className="cell-two">
          <span className="truncate">
            {group.url === null ? <em>deleted endpoint</em> : shortUrl(group.url)}
          </span>
          <span className="small faint truncate">{reasonName(group.reason)}</span>
        </span>
      ),
    },
    {
      name: 'Tenant',
      width: 120,
      wideOnly: true,
      cell: ({ tenant }) => <span className="soft">{tenant}</span>,
    },
    { name: 'Oldest', width: 100, wideOnly: true, cell: ({ oldest_at }) => <Ago at={oldest_at} /> },
    { name: 'Newest', width: 100, wideOnly: true, cell: ({ newest_at }) => <Ago at={newest_at} /> },
    { name: 'Letters', width: 80, num: true, cell: ({ count }) => <strong>{showCount(count)}</strong> },
    ...(may.write
      ? [
          {
            name: 'Actions',
            width: 176,
            head: <span className="sr-only">Actions</span>,
            wideOnly: true,
            cell: (group: DeadLetterGroup) => (
              <span className="row" style={{ justifyContent: 'flex-end' }}>
                <Button kind="small" icon="replay" onClick={() => ask('replay', group)}>
                  Replay
                </Button>
                <Button
                  kind="small quiet"
                  icon="trash"
                  label={`Discard ${group.count} letters`}
                  onClick={() => ask('discard', group)}
                />
              </span>
            ),
          },
        ]
      : []),
  ];
  return (
    <Card>
      <Table
        label="Dead letters by endpoint and reason"
        rows={groups.data?.data}
        rowHeight={51}
        keyOf={(group) => `${group.endpoint_id}${group.reason}`}
        linkOf={(group) =>
          withQuery('/dead-letters', { endpoint_id: group.endpoint_id, reason: group.reason })
        }
        columns={columns}
        empty={<NoLetters />}
      />
      {order !== null && <BulkDialog {...order} onClose={() => setOrder(null)} />}
    </Card>
  );
}

function NoLetters() {
  return (
    <Empty icon="check" title="No dead letters">
      Everything that was accepted has been delivered, or is still being tried.
    </Empty>
  );
}

function Letters({ filter }: { filter: BulkFilter }) {
  const may = useMay();
  const list = usePages<Delivery>(
    withQuery('/v1/dead-letters', { ...filter, ids: undefined }),
    ({ id }) => id,
    { pollMs: 3_000 },
  );
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [order, setOrder] = useState<Order | null>(null);
  const toggle = (id: string): void => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  const chosen = selected.size > 0;
  const ask = (kind: Order['kind']): void =>
    setOrder({
      kind,
      filter: chosen ? { ...filter, ids: [...selected] } : filter,
      about: chosen ? plural(selected.size, 'selected letter') : 'all that match the filter',
    });
  const shown = list.rows ?? [];
  const allShown = shown.length > 0 && shown.every(({ id }) => selected.has(id));
  const columns: Column<Delivery>[] = [
    ...(may.write
      ? [
          {
            name: 'Select',
            width: 40,
            head: (
              <input
                type="checkbox"
                aria-label="Select all that are shown"
                checked={allShown}
                onChange={() =>
                  setSelected(allShown ? new Set() : new Set(shown.map(({ id }) => id).slice(0, 1000)))
                }
              />
            ),
            cell: ({ id, event_type }: Delivery) => (
              <input
                type="checkbox"
                aria-label={`Select ${event_type} ${id}`}
                checked={selected.has(id)}
                onChange={() => toggle(id)}
              />
            ),
          },
        ]
      : []),
    { name: 'Event', link: true, cell: ({ event_type }) => <span className="mono">{event_type}</span> },
    {
      name: 'Why',
      width: '36%',
      wideOnly: true,
      cell: ({ last_error, reason, replaying }) =>
        replaying ? (
          <Badge tone="info">being replayed</Badge>
        ) : (
          <span className="soft">{whyDead(last_error, reason)}</span>
        ),
    },
    { name: 'Answer', width: 92, cell: ({ last_status_code }) => <CodeBadge code={last_status_code} /> },
    { name: 'Attempts', width: 78, num: true, wideOnly: true, cell: ({ attempts }) => attempts },
    { name: 'Died', width: 96, num: true, cell: ({ dead_at }) => <Ago at={dead_at} /> },
  ];
  return (
    <Card>
      <div className="filters">
        <FilterChips filter={filter} />
        <span className="grow" />
        {may.write && (
          <>
            {chosen && (
              <Button kind="quiet" onClick={() => setSelected(new Set())}>
                {plural(selected.size, 'selected')} · clear
              </Button>
            )}
            <Button icon="replay" kind="primary" disabled={shown.length === 0} onClick={() => ask('replay')}>
              {chosen ? 'Replay selected' : 'Replay all matching'}
            </Button>
            <Button icon="trash" kind="danger" disabled={shown.length === 0} onClick={() => ask('discard')}>
              {chosen ? 'Discard selected' : 'Discard all matching'}
            </Button>
          </>
        )}
      </div>
      <PagedTable
        label="Dead letters"
        list={list}
        keyOf={({ id }) => id}
        linkOf={toDelivery}
        isSelected={({ id }) => selected.has(id)}
        columns={columns}
        empty={<NoLetters />}
      />
      {order !== null && (
        <BulkDialog
          {...order}
          onClose={() => {
            setOrder(null);
            void list.refresh();
          }}
          onOrdered={() => setSelected(new Set())}
        />
      )}
    </Card>
  );
}

function FilterChips({ filter }: { filter: BulkFilter }) {
  const chips = (['endpoint_id', 'reason', 'type'] as const).filter((name) => filter[name] !== undefined);
  if (chips.length === 0) return <span className="soft">All dead letters</span>;
  return (
    <>
      {chips.map((name) => (
        <Button key={name} kind="small" icon="cross" onClick={() => setQuery({ [name]: null, view: 'list' })}>
          {name === 'reason' ? reasonName(filter.reason!) : filter[name]}
        </Button>
      ))}
    </>
  );
}
