import type { Tenant } from '@posthorn/client';
import { useState } from 'react';
import { usePagedList } from '../api/paged-list.ts';
import { selectTenant, usePermissions } from '../api/session.ts';
import { navigate } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { formatCount } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { TenantForm } from './tenant-form.tsx';

const PATH = '/v1/tenants';

export function TenantsPage() {
  usePageTitle('Tenants');
  const { canSeeAllTenants, isAdmin } = usePermissions();
  const list = usePagedList<Tenant>(PATH, ({ id }) => id);
  const [edited, setEdited] = useState<Tenant | null>(null);
  const closeForm = (): void => {
    setEdited(null);
    void list.refresh();
  };
  return (
    <>
      <PageHeader
        title="Tenants"
        below={
          <p className="soft">
            A tenant owns endpoints and events. Posthorn creates it when you first use its name.
          </p>
        }
      >
        {canSeeAllTenants && <ExportButton path={PATH} name="tenants" />}
      </PageHeader>
      {canSeeAllTenants ? (
        <Card>
          <PagedTable
            label="Tenants"
            list={list}
            getKey={({ id }) => id}
            rowHeight={TALL_ROW}
            columns={buildColumns(isAdmin ? setEdited : null)}
            empty={
              <EmptyState icon="tenants" title="No tenants yet">
                The first endpoint or event creates one.
              </EmptyState>
            }
          />
        </Card>
      ) : (
        <Notice tone="warn">This key belongs to one tenant.</Notice>
      )}
      {edited !== null && <TenantForm tenant={edited} onClose={closeForm} />}
    </>
  );
}

function openFor(tenant: string, page: string): void {
  selectTenant(tenant);
  navigate(page);
}

/** `onEdit` null: the user may not change tenants. */
const buildColumns = (onEdit: ((tenant: Tenant) => void) | null): readonly Column<Tenant>[] => [
  {
    name: 'Tenant',
    render: ({ id, name, description }) => (
      <TwoLineCell
        first={name === '' ? id : name}
        second={[name !== '' && id, description].filter(Boolean).join(' · ')}
      />
    ),
  },
  {
    name: 'Publish limit',
    width: 130,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ ingest_rate_limit: limit }) =>
      limit === null ? <span className="faint">default</span> : `${formatCount(limit.per_second)} / s`,
  },
  {
    name: 'Endpoint limit',
    width: 120,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ max_endpoints: most }) =>
      most === null ? <span className="faint">default</span> : formatCount(most),
  },
  { name: 'Validation', width: 100, hideOnPhone: true, render: ({ validation }) => validation },
  {
    name: 'Created',
    width: 104,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ created_at }) => <Ago at={created_at} />,
  },
  {
    name: 'Actions',
    width: onEdit === null ? 190 : 250,
    head: HIDDEN_ACTIONS_HEAD,
    render: (tenant) => {
      const { id } = tenant;
      return (
        <span className="row" style={{ justifyContent: 'flex-end' }}>
          {onEdit !== null && (
            <Button kind="small" label={`Edit ${id}`} onClick={() => onEdit(tenant)}>
              Edit
            </Button>
          )}
          <Button kind="small" label={`Endpoints of ${id}`} onClick={() => openFor(id, '/endpoints')}>
            Endpoints
          </Button>
          <Button kind="small" label={`Events of ${id}`} onClick={() => openFor(id, '/events')}>
            Events
          </Button>
        </span>
      );
    },
  },
];
