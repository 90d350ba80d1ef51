import type { Delivery } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { usePermissions } from '../api/session.ts';
import { setQuery } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { type EndpointName, useEndpointNames } from '../ui/endpoint-name.ts';
import { ExportButton } from '../ui/export-button.tsx';
import { describeDeath, describeReason } from '../ui/failure-text.ts';
import { FilterInput } from '../ui/filter-input.tsx';
import { formatCount } from '../ui/format.ts';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';
import { type BulkAction, DeadLetterBulkDialog, type DeadLetterFilter } from './dead-letter-bulk-dialog.tsx';
import { NoDeadLetters } from './dead-letter-groups.tsx';
import { linkToDelivery } from './delivery-list.tsx';

/** The API accepts at most this many ids in one filter. */
const MAX_SELECTED = 1000;

/** Single dead letters that match a filter, to select, replay and discard. */
export function DeadLetterList({ filter }: { filter: DeadLetterFilter }) {
  const { canReplay } = usePermissions();
  const path = withQuery('/v1/dead-letters', { ...filter, ids: undefined });
  const list = usePagedList<Delivery>(path, ({ id }) => id, { pollMs: 3_000 });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [action, setAction] = useState<BulkAction | null>(null);
  const clearSelection = (): void => setSelected(new Set());
  const startAction = (kind: BulkAction['kind']): void =>
    setAction(
      selected.size > 0
        ? {
            kind,
            filter: { ...filter, ids: [...selected] },
            selection: `${formatCount(selected.size)} selected`,
          }
        : { kind, filter, selection: 'all that match the filter' },
    );
  const rows = list.rows ?? [];
  const nameEndpoint = useEndpointNames();
  const columns = [
    ...(canReplay ? [buildSelectColumn(rows, selected, setSelected)] : []),
    ...buildColumns(nameEndpoint),
  ];
  return (
    <Card>
      <div className="filters">
        <FilterChips filter={filter} />
        <FilterInput name="type" label="Event type" placeholder="Event type" />
        <TimeRangeFilter />
        <ExportButton path={path} name="dead-letters" />
        <span className="grow" />
        {canReplay && (
          <BulkButtons
            selectedCount={selected.size}
            isDisabled={rows.length === 0}
            onClear={clearSelection}
            onAction={startAction}
          />
        )}
      </div>
      <PagedTable
        label="Dead letters"
        list={list}
        getKey={({ id }) => id}
        getLink={linkToDelivery}
        isSelected={({ id }) => selected.has(id)}
        columns={columns}
        empty={<NoDeadLetters />}
      />
      {action !== null && (
        <DeadLetterBulkDialog
          {...action}
          onClose={() => {
            setAction(null);
            void list.refresh();
          }}
          onConfirm={clearSelection}
        />
      )}
    </Card>
  );
}

const buildColumns = (nameEndpoint: (id: string) => EndpointName): Column<Delivery>[] => [
  { name: 'Event', isLink: true, render: ({ event_type }) => <span className="mono">{event_type}</span> },
  {
    name: 'Endpoint',
    width: '20%',
    hideOnPhone: true,
    render: ({ endpoint_id }) => {
      const { name, detail } = nameEndpoint(endpoint_id);
      return <span title={`${detail ?? ''} ${endpoint_id}`.trim()}>{name}</span>;
    },
  },
  {
    name: 'Reason',
    width: '32%',
    hideOnPhone: true,
    render: ({ last_error, reason, replaying }) =>
      replaying ? (
        <Badge tone="info">being replayed</Badge>
      ) : (
        <span className="soft">{describeDeath(last_error, reason)}</span>
      ),
  },
  {
    name: 'Response',
    width: 100,
    render: ({ last_status_code }) => <HttpStatusBadge code={last_status_code} />,
  },
  { name: 'Attempts', width: 78, isNumeric: true, hideOnPhone: true, render: ({ attempts }) => attempts },
  { name: 'Died', width: 96, isNumeric: true, render: ({ dead_at }) => <Ago at={dead_at} /> },
];

function buildSelectColumn(
  rows: readonly Delivery[],
  selected: ReadonlySet<string>,
  onChange: (selected: ReadonlySet<string>) => void,
): Column<Delivery> {
  const areAllSelected = rows.length > 0 && rows.every(({ id }) => selected.has(id));
  const toggleAll = (): void =>
    onChange(new Set(areAllSelected ? [] : rows.slice(0, MAX_SELECTED).map(({ id }) => id)));
  const toggleRow = (id: string): void => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  return {
    name: 'Select',
    width: 40,
    head: (
      <input
        type="checkbox"
        aria-label="Select all rows of this list"
        checked={areAllSelected}
        onChange={toggleAll}
      />
    ),
    render: ({ id, event_type }) => (
      <input
        type="checkbox"
        aria-label={`Select ${event_type} ${id}`}
        checked={selected.has(id)}
        onChange={() => toggleRow(id)}
      />
    ),
  };
}

interface BulkButtonsProps {
  selectedCount: number;
  isDisabled: boolean;
  onClear: () => void;
  onAction: (kind: BulkAction['kind']) => void;
}

function BulkButtons({ selectedCount, isDisabled, onClear, onAction }: BulkButtonsProps) {
  const target = selectedCount > 0 ? 'selected' : 'all matching';
  return (
    <>
      {selectedCount > 0 && (
        <Button kind="quiet" onClick={onClear}>
          {formatCount(selectedCount)} selected · clear
        </Button>
      )}
      <Button icon="replay" kind="primary" disabled={isDisabled} onClick={() => onAction('replay')}>
        Replay {target}
      </Button>
      <Button icon="trash" kind="danger" disabled={isDisabled} onClick={() => onAction('discard')}>
        Discard {target}
      </Button>
    </>
  );
}

function FilterChips({ filter }: { filter: DeadLetterFilter }) {
  const nameEndpoint = useEndpointNames();
  const names = (['endpoint_id', 'reason'] as const).filter((name) => filter[name] !== undefined);
  if (names.length === 0) return <span className="soft">All dead letters</span>;
  const describe = (name: (typeof names)[number]): string => {
    if (name === 'reason') return describeReason(filter.reason!);
    return nameEndpoint(filter.endpoint_id!).name;
  };
  return (
    <>
      {names.map((name) => (
        <Button key={name} kind="small" icon="cross" onClick={() => setQuery({ [name]: null, view: 'list' })}>
          {describe(name)}
        </Button>
      ))}
    </>
  );
}
