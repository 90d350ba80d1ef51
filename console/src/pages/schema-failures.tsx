import type { Page, SchemaFailure } from '@posthorn/client';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { useSession } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Card } from '../ui/card.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { useQueryRange } from '../ui/query-range.ts';
import { Ago } from '../ui/time.tsx';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';

const SHOWN = 20;

/** The newest payloads of an event type that did not match the catalogue. `path` is that of the event type. */
export function FailuresCard({ path }: { path: string }) {
  const { selectedTenant } = useSession();
  const { range } = useQueryRange();
  const filters = { tenant: selectedTenant, ...range };
  const { data } = useQuery<Page<SchemaFailure>>(
    withQuery(`${path}/failures`, { limit: SHOWN, ...filters }),
    { pollMs: 5_000 },
  );
  const failures = data?.data ?? [];
  return (
    <Card
      title="Recent failures"
      actions={
        <span className="row wrap">
          <TimeRangeFilter />
          <ExportButton path={withQuery(`${path}/failures`, filters)} name="failures" />
        </span>
      }
    >
      <div className="card-body">
        {failures.length === 0 ? (
          <p className="soft">
            {Object.keys(range).length === 0 ? 'None in the last 7 days.' : 'None in this time range.'}
          </p>
        ) : (
          <ul className="change-list">
            {failures.map((failure) => (
              <li key={`${failure.created_at} ${failure.event_id} ${failure.path}`}>
                <FailureText failure={failure} />
              </li>
            ))}
          </ul>
        )}
        {data?.next_cursor != null && (
          <p className="small faint">The newest {SHOWN} are shown. Export has all of them.</p>
        )}
      </div>
    </Card>
  );
}

function FailureText({ failure }: { failure: SchemaFailure }) {
  const { created_at, result, version, path, message, event_id } = failure;
  return (
    <>
      <Ago at={created_at} /> · {result}
      {version !== null && ` · ${version}`} · <span className="mono">{path}</span> {message}
      {event_id !== null && (
        <>
          {' · '}
          <Link className="break-anywhere" to={`/events/${event_id}`}>
            {event_id}
          </Link>
        </>
      )}
    </>
  );
}
