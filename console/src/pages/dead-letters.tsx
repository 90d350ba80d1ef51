import { useMemo } from 'react';
import { useSession } from '../api/session.ts';
import { navigate, setQuery, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { useQueryRange } from '../ui/query-range.ts';
import type { DeadLetterFilter } from './dead-letter-bulk-dialog.tsx';
import { DeadLetterGroupTable } from './dead-letter-groups.tsx';
import { DeadLetterList } from './dead-letter-list.tsx';
import { TaskProgress } from './task-progress.tsx';

export function DeadLettersPage() {
  usePageTitle('Dead letters');
  const { query } = useLocation();
  const { selectedTenant } = useSession();
  const { range } = useQueryRange();
  const filter = useMemo(
    () => ({ ...readFilter(query, selectedTenant), ...range }),
    [query, selectedTenant, range],
  );
  const isList =
    query.has('endpoint_id') || query.has('reason') || query.has('type') || query.get('view') === 'list';
  return (
    <>
      <PageHeader
        title="Dead letters"
        below={
          <p className="soft">
            Deliveries that failed and that Posthorn no longer retries. Replay or discard them.
          </p>
        }
      >
        {isList ? (
          <Button onClick={() => navigate('/dead-letters')}>Show groups</Button>
        ) : (
          <Button onClick={() => setQuery({ view: 'list' })}>Show as a list</Button>
        )}
      </PageHeader>
      <div className="grid">
        <TaskProgress />
        {isList ? <DeadLetterList filter={filter} /> : <DeadLetterGroupTable range={range} />}
      </div>
    </>
  );
}

function readFilter(query: URLSearchParams, tenant: string | null): DeadLetterFilter {
  const read = (name: string): Record<string, string> => {
    const value = query.get(name);
    return value === null || value === '' ? {} : { [name]: value };
  };
  return {
    ...(tenant !== null && { tenant }),
    ...read('endpoint_id'),
    ...read('reason'),
    ...read('type'),
  };
}
