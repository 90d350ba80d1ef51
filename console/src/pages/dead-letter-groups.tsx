import type { DeadLetterGroups } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { type EndpointName, nameEndpoint } from '../ui/endpoint-name.ts';
import { ExportButton } from '../ui/export-button.tsx';
import { describeReason } from '../ui/failure-text.ts';
import { formatCount, plural } from '../ui/format.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { type Column, HIDDEN_ACTIONS_HEAD, TALL_ROW, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import type { TimeRange } from '../ui/time-range.ts';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { type BulkAction, DeadLetterBulkDialog } from './dead-letter-bulk-dialog.tsx';

type DeadLetterGroup = DeadLetterGroups['data'][number];

/** Dead letters counted by endpoint and reason. */
export function DeadLetterGroupTable({ range }: { range: TimeRange }) {
  const { canReplay } = usePermissions();
  const { selectedTenant } = useSession();
  const [action, setAction] = useState<BulkAction | null>(null);
  const path = withQuery('/v1/dead-letters/groups', { tenant: selectedTenant, ...range });
  const groups = useQuery<DeadLetterGroups>(path, { pollMs: 3_000 });
  if (groups.data === undefined && groups.error !== null)
    return (
      <Card>
        <ErrorNotice error={groups.error} onRetry={groups.refresh} />
      </Card>
    );
  const startAction = (kind: BulkAction['kind'], group: DeadLetterGroup): void =>
    setAction({
      kind,
      filter: { tenant: group.tenant, endpoint_id: group.endpoint_id, reason: group.reason, ...range },
      selection: `${nameGroup(group).name}, ${describeReason(group.reason)}`,
    });
  return (
    <Card>
      <div className="filters">
        <TimeRangeFilter />
        <ExportButton path={path} name="dead-letter-groups" isPaged={false} />
        {groups.data !== undefined && <span className="soft small">{describeTotal(groups.data)}</span>}
      </div>
      <Table
        label="Dead letters by endpoint and reason"
        rows={groups.data?.data}
        rowHeight={TALL_ROW}
        getKey={(group) => `${group.endpoint_id}${group.reason}`}
        getLink={(group) =>
          withQuery('/dead-letters', { endpoint_id: group.endpoint_id, reason: group.reason, ...range })
        }
        columns={[...COLUMNS, ...(canReplay ? [buildActionsColumn(startAction)] : [])]}
        empty={<NoDeadLetters />}
      />
      {action !== null && <DeadLetterBulkDialog {...action} onClose={() => setAction(null)} />}
    </Card>
  );
}

function describeTotal({ data, more }: DeadLetterGroups): string {
  const total = data.reduce((sum, { count }) => sum + count, 0);
  return more ? `${formatCount(total)} or more: only the newest are counted` : plural(total, 'dead letter');
}

function nameGroup({ endpoint_id, url, description }: DeadLetterGroup): EndpointName {
  if (url === null) return { name: 'Deleted endpoint', detail: endpoint_id };
  return nameEndpoint({ url, description: description ?? '' });
}

const COLUMNS: readonly Column<DeadLetterGroup>[] = [
  {
    name: 'Endpoint',
    isLink: true,
    render: (group) => {
      const { name, detail } = nameGroup(group);
      const reason = describeReason(group.reason);
      return <TwoLineCell first={name} second={detail === null ? reason : `${reason} · ${detail}`} />;
    },
  },
  {
    name: 'Tenant',
    width: 120,
    hideOnPhone: true,
    render: ({ tenant }) => <span className="soft">{tenant}</span>,
  },
  { name: 'Oldest', width: 100, hideOnPhone: true, render: ({ oldest_at }) => <Ago at={oldest_at} /> },
  { name: 'Newest', width: 100, hideOnPhone: true, render: ({ newest_at }) => <Ago at={newest_at} /> },
  {
    name: 'Count',
    width: 80,
    isNumeric: true,
    render: ({ count }) => <strong>{formatCount(count)}</strong>,
  },
];

const buildActionsColumn = (
  onAction: (kind: BulkAction['kind'], group: DeadLetterGroup) => void,
): Column<DeadLetterGroup> => ({
  name: 'Actions',
  width: 176,
  head: HIDDEN_ACTIONS_HEAD,
  hideOnPhone: true,
  render: (group) => (
    <span className="row" style={{ justifyContent: 'flex-end' }}>
      <Button kind="small" icon="replay" onClick={() => onAction('replay', group)}>
        Replay
      </Button>
      <Button
        kind="small quiet"
        icon="trash"
        label={`Discard ${plural(group.count, 'dead letter')}`}
        onClick={() => onAction('discard', group)}
      />
    </span>
  ),
});

export function NoDeadLetters() {
  return (
    <EmptyState icon="check" title="No dead letters">
      Deliveries that Posthorn no longer retries appear here.
    </EmptyState>
  );
}
