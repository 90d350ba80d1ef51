import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useSession } from '../api/session.ts';
import type { AuditEntry } from '../api/types.ts';
import { Link } from '../router.tsx';
import { Button, Card, Empty, Notice, PageHead } from '../ui/basics.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { plural } from '../ui/format.ts';
import { placeOfId } from '../ui/ids.ts';
import { PagedTable } from '../ui/table.tsx';
import { Ago, At } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';

export function AuditPage() {
  usePageTitle('Audit log');
  const { shownTenant } = useSession();
  const list = usePages<AuditEntry>(withQuery('/v1/audit', { tenant: shownTenant }), ({ id }) => id, {
    pollMs: 10_000,
  });
  const [shown, setShown] = useState<AuditEntry | null>(null);
  const missing = list.error?.status === 404;
  return (
    <>
      <PageHead title="Audit log" below={<p className="soft">Who changed what, and when.</p>} />
      {missing ? (
        <Notice title="No audit log here">This server does not offer /v1/audit.</Notice>
      ) : list.error?.status === 403 ? (
        <Notice tone="warn" title="Not for this key">
          {list.error.message}
        </Notice>
      ) : (
        <Card>
          <PagedTable
            label="Audit log"
            list={list}
            keyOf={({ id }) => id}
            empty={
              <Empty icon="audit" title="Nothing was changed yet">
                Every change through the API is recorded here, with who made it.
              </Empty>
            }
            columns={[
              { name: 'When', width: 104, cell: ({ created_at }) => <Ago at={created_at} /> },
              { name: 'What', cell: ({ action }) => <span className="mono">{action}</span> },
              {
                name: 'Who',
                width: '18%',
                wideOnly: true,
                cell: ({ actor }) => (
                  <span className="soft" title={actor.id}>
                    {actor.prefix === null ? (
                      'first admin key'
                    ) : (
                      <span className="mono">{actor.prefix}…</span>
                    )}
                  </span>
                ),
              },
              {
                name: 'Object',
                width: '30%',
                wideOnly: true,
                cell: ({ object }) => <ObjectLink object={object} />,
              },
              {
                name: 'Tenant',
                width: 110,
                wideOnly: true,
                cell: ({ tenant }) => <span className="soft">{tenant}</span>,
              },
              {
                name: 'Changes',
                width: 112,
                num: true,
                cell: (entry) =>
                  entry.changes.length === 0 ? null : (
                    <Button kind="small" onClick={() => setShown(entry)}>
                      {plural(entry.changes.length, 'change')}
                    </Button>
                  ),
              },
            ]}
          />
        </Card>
      )}
      {shown !== null && <ChangesDialog entry={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function ChangesDialog({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const show = (value: unknown): string => (value === undefined ? '–' : JSON.stringify(value));
  return (
    <Dialog title={entry.action} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="small faint">
          <At at={entry.created_at} /> · {entry.actor.prefix ?? 'first admin key'} ({entry.actor.scope}) ·
          from {entry.address}
        </p>
        <dl className="facts">
          {entry.changes.map(({ field, before, after }) => (
            <div key={field} style={{ display: 'contents' }}>
              <dt className="mono">{field}</dt>
              <dd className="mono">
                {before !== undefined && <span className="bad">{show(before)}</span>}
                {before !== undefined && after !== undefined && ' → '}
                {after !== undefined && <span className="good">{show(after)}</span>}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}

function ObjectLink({ object: { id, type } }: { object: AuditEntry['object'] }) {
  if (id === null) return <span className="faint">{type}</span>;
  const place = placeOfId(id);
  if (place === null) return <span className="mono faint">{id}</span>;
  return (
    <Link to={place.to} className="mono">
      {id}
    </Link>
  );
}
