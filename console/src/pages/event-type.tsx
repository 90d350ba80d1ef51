import type { EventType, EventTypeVersion, VersionDiff } from '@posthorn/client';
import { useState } from 'react';
import { useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { JsonBlock } from '../ui/code-block.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { At } from '../ui/time.tsx';
import { EventTypeForm } from './event-type-form.tsx';
import { PinsCard } from './event-type-pins.tsx';
import { TryCard } from './event-type-try.tsx';
import { FailuresCard } from './schema-failures.tsx';
import { CompareVersionsCard } from './version-compare.tsx';
import { Difference } from './version-difference.tsx';
import { VersionForm } from './version-form.tsx';
import { VersionSchema } from './version-schema.tsx';

/** The dialog that is open. `version` undefined: a new version. */
type OpenDialog =
  | { readonly kind: 'type' }
  | { readonly kind: 'version'; readonly version?: EventTypeVersion };

/** One event type: its versions, what changed between them, who pins what, recent failures, and a form to try a payload. */
export function EventTypePage({ name }: { name: string }) {
  usePageTitle(name);
  const { isAdmin } = usePermissions();
  const path = `/v1/event-types/${encodeURIComponent(name)}`;
  const type = useQuery<EventType>(path);
  const versions = useQuery<{ data: EventTypeVersion[] }>(`${path}/versions`);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const list = versions.data?.data ?? [];
  const isUnknown = type.error?.status === 404;
  if (type.data === undefined && type.error !== null && !isUnknown)
    return <ErrorPage title={name} error={type.error} onRetry={type.refresh} />;
  const closeDialog = (): void => {
    setDialog(null);
    void type.refresh();
    void versions.refresh();
  };
  return (
    <>
      <PageHeader
        crumb={<Link to="/event-types">Event types</Link>}
        title={
          <span className="mono break-anywhere" style={{ fontSize: 18 }}>
            {name}
          </span>
        }
        below={!isUnknown && <TypeFacts type={type.data} />}
      >
        {isAdmin && (type.data !== undefined || isUnknown) && (
          <>
            {type.data !== undefined && <Button onClick={() => setDialog({ kind: 'type' })}>Edit</Button>}
            <Button kind="primary" icon="plus" onClick={() => setDialog({ kind: 'version' })}>
              Add version
            </Button>
          </>
        )}
      </PageHeader>
      <div className="grid">
        {type.data !== undefined && <OwnSchemaCard type={type.data} hasVersions={list.length > 0} />}
        {(isUnknown || (versions.data !== undefined && list.length === 0)) && (
          <Card title="Versions">
            <EmptyState
              icon="types"
              title={
                isUnknown ? 'The catalogue does not have this event type' : 'This event type has no versions'
              }
            >
              A version has a schema. Posthorn checks payloads against it, compares it with the next version,
              and lets endpoints pin it.
            </EmptyState>
          </Card>
        )}
        {list.map((version, index) => (
          <VersionCard
            key={version.version}
            path={path}
            version={version}
            previous={list[index + 1]}
            onEdit={isAdmin ? () => setDialog({ kind: 'version', version }) : null}
          />
        ))}
        {list.length > 2 && <CompareVersionsCard path={path} versions={list} />}
        {!isUnknown && (
          <>
            <PinsCard path={path} />
            <TryCard path={path} versions={list} />
          </>
        )}
        <FailuresCard path={path} />
      </div>
      {dialog?.kind === 'type' && <EventTypeForm type={type.data!} onClose={closeDialog} />}
      {dialog?.kind === 'version' && (
        <VersionForm path={path} version={dialog.version} newest={list[0]} onClose={closeDialog} />
      )}
    </>
  );
}

function TypeFacts({ type }: { type: EventType | undefined }) {
  if (type === undefined) return <p className="soft">&nbsp;</p>;
  return (
    <div className="stack" style={{ gap: 4 }}>
      {type.description !== '' && <p className="soft">{type.description}</p>}
      <p className="small faint row wrap">
        {type.deprecated && <Badge tone="warn">Deprecated</Badge>}
        {type.sunset_at !== null && (
          <span>
            Sunset: <At at={type.sunset_at} />
          </span>
        )}
        <span>Validation: {type.validation ?? 'as set for the tenant'}</span>
        <Link to={`/endpoints?event_type=${encodeURIComponent(type.name)}`}>Endpoints that subscribe</Link>
      </p>
    </div>
  );
}

/** The schema that the type has beside its versions, if it has one. */
function OwnSchemaCard({
  type: { schema, example },
  hasVersions,
}: {
  type: EventType;
  hasVersions: boolean;
}) {
  if (schema === null && example == null) return null;
  return (
    <Card title="Schema without a version">
      <div className="dialog-body">
        {hasVersions && (
          <p className="soft">Posthorn checks events against the versions below, not against this schema.</p>
        )}
        <h3>Example</h3>
        <OptionalJson value={example} label="example" />
        <h3>Schema</h3>
        <VersionSchema schema={schema} version="the type" />
      </div>
    </Card>
  );
}

const TONES: Record<EventTypeVersion['status'], Tone> = {
  draft: 'info',
  active: 'good',
  deprecated: 'warn',
  retired: 'mute',
};

interface VersionCardProps {
  path: string;
  version: EventTypeVersion;
  /** The version that was created before it. */
  previous: EventTypeVersion | undefined;
  /** Null: the user may not change it. */
  onEdit: (() => void) | null;
}

function VersionCard({ path, version, previous, onEdit }: VersionCardProps) {
  const diff = useQuery<VersionDiff>(
    previous === undefined ? null : `${path}/versions/${previous.version}/diff/${version.version}`,
  );
  return (
    <Card
      title={<span className="mono">{version.version}</span>}
      actions={
        <span className="row">
          {version.latest && <Badge tone="accent">Latest</Badge>}
          <Badge tone={TONES[version.status]}>{version.status}</Badge>
          {onEdit !== null && (
            <Button kind="small" label={`Edit version ${version.version}`} onClick={onEdit}>
              Edit
            </Button>
          )}
        </span>
      }
    >
      <div className="dialog-body">
        {version.description !== '' && <p>{version.description}</p>}
        {version.changelog !== '' && <p className="soft">{version.changelog}</p>}
        {version.sunset_at !== null && (
          <p className="soft">
            Sunset: <At at={version.sunset_at} />
          </p>
        )}
        {diff.data !== undefined && <Difference diff={diff.data} against={previous!.version} />}
        <h3>Example</h3>
        <OptionalJson value={version.example} label={`example of ${version.version}`} />
        <h3>Schema</h3>
        <VersionSchema schema={version.schema} version={version.version} />
      </div>
    </Card>
  );
}

function OptionalJson({ value, label }: { value: unknown; label: string }) {
  if (value == null) return <p className="faint">None.</p>;
  return <JsonBlock text={JSON.stringify(value, null, 2)} label={label} />;
}
