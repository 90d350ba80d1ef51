import type { EventTypeTried, EventTypeVersion, SchemaFailure, VersionDiff } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { Link } from '../router.tsx';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { JsonBlock } from '../ui/code-block.tsx';
import { TextArea } from '../ui/fields.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Ago } from '../ui/time.tsx';

/** One event type: its versions, what changed between them, recent failures, and a form to try a payload. */
export function EventTypePage({ name }: { name: string }) {
  usePageTitle(name);
  const path = `/v1/event-types/${encodeURIComponent(name)}`;
  const versions = useQuery<{ data: EventTypeVersion[] }>(`${path}/versions`);
  const failures = useQuery<{ data: SchemaFailure[] }>(`${path}/failures?limit=20`, { pollMs: 5_000 });
  const list = versions.data?.data ?? [];
  return (
    <>
      <PageHeader title={<span className="mono">{name}</span>} />
      {versions.error !== null && <p className="soft">{versions.error.message}</p>}
      {list.length === 0 && versions.data !== undefined && (
        <Card title="Versions">
          <p className="soft">This event type has no versions.</p>
        </Card>
      )}
      {list.map((version, index) => (
        <VersionCard key={version.version} path={path} version={version} previous={list[index + 1]} />
      ))}
      <TryCard path={path} />
      <Card title="Recent failures">
        <FailureList failures={failures.data?.data ?? []} />
      </Card>
    </>
  );
}

const TONES: Record<EventTypeVersion['status'], Tone> = {
  draft: 'info',
  active: 'good',
  deprecated: 'warn',
  retired: 'mute',
};

function VersionCard({
  path,
  version,
  previous,
}: {
  path: string;
  version: EventTypeVersion;
  previous: EventTypeVersion | undefined;
}) {
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
        </span>
      }
    >
      <div className="dialog-body">
        {version.description !== '' && <p>{version.description}</p>}
        {version.changelog !== '' && <p className="soft">{version.changelog}</p>}
        {version.sunset_at !== null && (
          <p className="soft">
            Sunset: <Ago at={version.sunset_at} />
          </p>
        )}
        {diff.data !== undefined && <Difference diff={diff.data} against={previous!.version} />}
        <h3>Example</h3>
        <OptionalJson value={version.example} label={`example of ${version.version}`} />
        <h3>JSON Schema</h3>
        <OptionalJson value={version.schema} label={`schema of ${version.version}`} />
      </div>
    </Card>
  );
}

function Difference({ diff, against }: { diff: VersionDiff; against: string }) {
  return (
    <>
      <h3>
        Changes since {against}{' '}
        <Badge tone={diff.verdict === 'additive' ? 'good' : 'bad'}>{diff.verdict}</Badge>
      </h3>
      {diff.changes.length === 0 && <p className="faint">None.</p>}
      <ul>
        {diff.changes.map(({ path, kind, message, breaking }) => (
          <li key={`${path} ${kind}`}>
            <span className="mono">{path === '' ? 'data' : path}</span> {message}
            {breaking && ' (breaking)'}
          </li>
        ))}
      </ul>
      {diff.advice.map((text) => (
        <p key={text} className="soft">
          {text}
        </p>
      ))}
    </>
  );
}

function OptionalJson({ value, label }: { value: unknown; label: string }) {
  if (value == null) return <p className="faint">None.</p>;
  return <JsonBlock text={JSON.stringify(value, null, 2)} label={label} />;
}

function TryCard({ path }: { path: string }) {
  const [text, setText] = useState('{}');
  const [result, setResult] = useState<EventTypeTried | string | null>(null);
  const tryPayload = async (): Promise<void> => {
    try {
      setResult(await callApi<EventTypeTried>('POST', `${path}/try`, { data: JSON.parse(text) }));
    } catch (error) {
      setResult((error as Error).message);
    }
  };
  return (
    <Card title="Try a payload">
      <div className="dialog-body">
        <TextArea label="Data (JSON)" rows={6} value={text} onChange={setText} />
        <Button onClick={() => void tryPayload()}>Check</Button>
        <div aria-live="polite">
          {typeof result === 'string' && <p>{result}</p>}
          {result !== null && typeof result !== 'string' && <TryResult result={result} />}
        </div>
      </div>
    </Card>
  );
}

function TryResult({ result: { valid, version, errors } }: { result: EventTypeTried }) {
  return (
    <>
      <p>
        <Badge tone={valid ? 'good' : 'bad'}>{valid ? 'Valid' : 'Invalid'}</Badge>{' '}
        {version !== null && `checked against ${version}`}
      </p>
      <ul>
        {errors.map(({ path, message }) => (
          <li key={`${path} ${message}`}>
            <span className="mono">{path}</span> {message}
          </li>
        ))}
      </ul>
    </>
  );
}

function FailureList({ failures }: { failures: readonly SchemaFailure[] }) {
  if (failures.length === 0) return <p className="soft">None in the last 7 days.</p>;
  return (
    <ul>
      {failures.map((failure) => (
        <li key={`${failure.created_at} ${failure.event_id} ${failure.path}`}>
          <Ago at={failure.created_at} /> · {failure.result} · <span className="mono">{failure.path}</span>{' '}
          {failure.message}
          {failure.event_id !== null && (
            <>
              {' · '}
              <Link to={`/events/${failure.event_id}`}>{failure.event_id}</Link>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
