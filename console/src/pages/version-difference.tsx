import type { VersionDiff } from '@posthorn/client';
import { Badge } from '../ui/badge.tsx';

/** What changed between two versions, whether it breaks receivers, and how to make the change safely. */
export function Difference({ diff, against }: { diff: VersionDiff; against: string }) {
  return (
    <div className="stack">
      <h3>
        Changes since {against}{' '}
        <Badge tone={diff.verdict === 'additive' ? 'good' : 'bad'}>{diff.verdict}</Badge>
      </h3>
      {diff.changes.length === 0 ? (
        <p className="faint">The schema is the same.</p>
      ) : (
        <ul className="change-list">
          {diff.changes.map(({ path, kind, message, breaking }) => (
            <li key={`${path} ${kind}`}>
              <span className="mono">{path === '' ? 'data' : path}</span> {message}
              {breaking && ' (breaking)'}
            </li>
          ))}
        </ul>
      )}
      {diff.advice.map((text) => (
        <p key={text} className="small soft">
          {text}
        </p>
      ))}
    </div>
  );
}
