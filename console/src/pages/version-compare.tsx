import type { EventTypeVersion, VersionDiff } from '@posthorn/client';
import { useState } from 'react';
import { useQuery } from '../api/query.ts';
import { Card } from '../ui/card.tsx';
import { SelectField } from '../ui/fields.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { Difference } from './version-difference.tsx';

interface CompareVersionsCardProps {
  /** Of the event type. */
  path: string;
  /** Newest first, at least three: each card already compares a version with the one before it. */
  versions: readonly EventTypeVersion[];
}

/** What changed between any two versions, for an endpoint that skips some of them. */
export function CompareVersionsCard({ path, versions }: CompareVersionsCardProps) {
  const names = versions.map(({ version }) => [version, version] as const);
  const [from, setFrom] = useState(names.at(-1)![0]);
  const [to, setTo] = useState(names[0]![0]);
  const diff = useQuery<VersionDiff>(
    from === to ? null : `${path}/versions/${encodeURIComponent(from)}/diff/${encodeURIComponent(to)}`,
  );
  return (
    <Card title="Compare versions">
      <div className="dialog-body">
        <div className="form-grid">
          <SelectField label="From version" options={names} value={from} onChange={setFrom} />
          <SelectField label="To version" options={names} value={to} onChange={setTo} />
        </div>
        {diff.error !== null && diff.data === undefined && <ErrorNotice error={diff.error} />}
        {diff.data !== undefined && from !== to && <Difference diff={diff.data} against={from} />}
      </div>
    </Card>
  );
}
