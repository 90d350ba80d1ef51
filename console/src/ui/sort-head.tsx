import { setQuery } from '../router.tsx';

/** The head of a column that sorts. The order is kept in the URL's query: `sort=waiting`, or `-waiting` for descending. */
export function SortHead({ name, sortKey, current }: { name: string; sortKey: string; current: string }) {
  const isAscending = current === sortKey;
  const isDescending = current === `-${sortKey}`;
  // Numbers are most interesting from the top: the first click sorts them descending, names ascending.
  const first = sortKey === 'name' || sortKey === 'state' || sortKey === 'success' ? sortKey : `-${sortKey}`;
  const second = first === sortKey ? `-${sortKey}` : sortKey;
  const next = current === first ? second : current === second ? '' : first;
  return (
    <button type="button" className="sort-head" onClick={() => setQuery({ sort: next })}>
      {name}
      <span aria-hidden="true">{isAscending ? ' ↑' : isDescending ? ' ↓' : ''}</span>
    </button>
  );
}

export function toAriaSort(sortKey: string, current: string): 'ascending' | 'descending' | undefined {
  if (current === sortKey) return 'ascending';
  return current === `-${sortKey}` ? 'descending' : undefined;
}
