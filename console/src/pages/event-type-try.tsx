import type { EventTypeTried, EventTypeVersion, Page, Pin } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { useSession } from '../api/session.ts';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { JsonBlock } from '../ui/code-block.tsx';
import { SelectField, TextArea } from '../ui/fields.tsx';

interface TryCardProps {
  /** Of the event type. */
  path: string;
  versions: readonly EventTypeVersion[];
}

interface TriedTarget {
  /** The version that the payload was converted to. Null: it was only checked. */
  readonly target: string | null;
  readonly tried: EventTypeTried;
}

const EVERY_PIN = 'every pin';

/** The versions that endpoints get, newest first. At most 250 endpoints are read. */
function usePinnedVersions(path: string, versions: readonly EventTypeVersion[]): string[] {
  const { selectedTenant } = useSession();
  const { data } = useQuery<Page<Pin>>(withQuery(`${path}/pins`, { limit: 250, tenant: selectedTenant }));
  const pinned = new Set(data?.data.map(({ version }) => version));
  return versions.map(({ version }) => version).filter((version) => pinned.has(version));
}

/** Checks a payload against a version, and converts it to others. Nothing is stored or sent. */
export function TryCard({ path, versions }: TryCardProps) {
  const [text, setText] = useState('{}');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [results, setResults] = useState<readonly TriedTarget[]>([]);
  const [problem, setProblem] = useState('');
  const names = versions.map(({ version }) => [version, version] as const);
  const pinned = usePinnedVersions(path, versions);
  const tryPayload = async (): Promise<void> => {
    setProblem('');
    setResults([]);
    try {
      const data: unknown = JSON.parse(text);
      const targets = to === EVERY_PIN ? pinned : [to || null];
      const tried: TriedTarget[] = [];
      for (const target of targets) {
        const body = { data, from_version: from || null, to_version: target };
        tried.push({ target, tried: await callApi<EventTypeTried>('POST', `${path}/try`, body) });
      }
      setResults(tried);
    } catch (error) {
      setProblem(error instanceof SyntaxError ? 'The data is not valid JSON.' : (error as Error).message);
    }
  };
  return (
    <Card title="Try a payload">
      <div className="dialog-body">
        <TextArea label="Data (JSON)" rows={6} value={text} onChange={setText} />
        {versions.length > 0 && (
          <div className="form-grid">
            <SelectField
              label="Written in version"
              options={[['', 'The latest one'], ...names]}
              value={from}
              onChange={setFrom}
            />
            <SelectField
              label="Convert to version"
              options={[
                ['', 'Do not convert'],
                ...(pinned.length > 0 ? [[EVERY_PIN, 'Every version that endpoints pin'] as const] : []),
                ...names,
              ]}
              value={to}
              onChange={setTo}
            />
          </div>
        )}
        <div>
          <Button onClick={() => void tryPayload()}>Check</Button>
        </div>
        <div aria-live="polite" className="stack" style={{ gap: 18 }}>
          {problem !== '' && <p>{problem}</p>}
          {results[0] !== undefined && <Verdict result={results[0].tried} />}
          {results.map((result) => (
            <Converted key={result.target} result={result} />
          ))}
        </div>
      </div>
    </Card>
  );
}

function Verdict({ result: { valid, version, errors } }: { result: EventTypeTried }) {
  return (
    <div className="stack">
      <p>
        <Badge tone={valid ? 'good' : 'bad'}>{valid ? 'Valid' : 'Invalid'}</Badge>{' '}
        {version !== null && `checked against ${version}`}
      </p>
      {errors.length > 0 && (
        <ul className="change-list">
          {errors.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              <span className="mono">{path}</span> {message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Converted({ result: { target, tried } }: { result: TriedTarget }) {
  const { converted, conversion_error: error } = tried;
  if (target === null) return null;
  return (
    <div className="stack">
      <h3>Converted to {target}</h3>
      {error !== null && <p className="field-error">{error}</p>}
      {converted !== null && <JsonBlock text={JSON.stringify(converted)} label={`payload in ${target}`} />}
    </div>
  );
}
