/** Search inside payloads. The server examines a bounded number of events per request, so the page asks repeatedly. */
import { type FormEvent, useEffect, useRef, useState } from 'react';
import type { PagedList } from '../api/paged-list.ts';
import { setQuery, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { formatTime } from '../ui/format.ts';
import { readIdTime } from '../ui/id-time.ts';
import { describeWhere, toWhere } from '../ui/payload-query.ts';

/** A path and a value, applied with Enter: a search for each letter would examine all events each time. */
export function PayloadFilter() {
  const applied = useLocation().query.get('where') ?? '';
  const [text, setText] = useState(applied);
  const [isInvalid, setInvalid] = useState(false);
  useEffect(() => setText(applied === '' ? '' : describeWhere(applied)), [applied]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const where = text.trim() === '' ? '' : toWhere(text);
    setInvalid(where === null);
    if (where !== null) setQuery({ where });
  };
  return (
    <form onSubmit={submit} className="row grow" style={{ flex: '2 1 260px' }}>
      <input
        className="input long mono"
        type="search"
        placeholder="Payload: data.order_id = ord_123"
        aria-label="Find by a value in the payload"
        title="A path and a value, then Enter"
        aria-invalid={isInvalid}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setInvalid(false);
          // The browser's own button clears the field.
          if (event.target.value === '' && applied !== '') setQuery({ where: null });
        }}
      />
    </form>
  );
}

/** The search continues automatically for this long. Then it pauses until the user resumes it. */
const AUTOMATIC_MS = 60_000;
/** It pauses when it has found this many events. */
const ENOUGH_ROWS = 50;

/** Searches further back while little was found, and says how far the search has come. */
export function SearchProgress({ list, where }: { list: PagedList<unknown>; where: string }) {
  const { cursor, rows, isLoadingMore, error, loadMore } = list;
  const [isStopped, setStopped] = useState(false);
  const startedAt = useRef(Date.now());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another search starts afresh
  useEffect(() => {
    startedAt.current = Date.now();
    setStopped(false);
  }, [where]);
  const count = rows?.length ?? 0;
  const isSearching =
    rows === undefined || (cursor !== null && !isStopped && count < ENOUGH_ROWS && error === null);
  useEffect(() => {
    if (!isSearching || cursor === null || isLoadingMore) return;
    if (Date.now() - startedAt.current > AUTOMATIC_MS) setStopped(true);
    else loadMore();
  }, [isSearching, cursor, isLoadingMore, loadMore]);
  const resume = (): void => {
    startedAt.current = Date.now();
    setStopped(false);
    loadMore();
  };
  return (
    <div className="filters small soft" role="status">
      <span className="grow">
        {isSearching ? 'Searching' : cursor === null ? 'Searched' : 'Paused the search'} for{' '}
        <span className="mono">{describeWhere(where)}</span>, newest events first.{' '}
        {cursor === null ? '' : `Examined all events since ${formatTime(readIdTime(cursor))}.`}
      </span>
      {isSearching && cursor !== null && (
        <Button kind="small" onClick={() => setStopped(true)}>
          Stop
        </Button>
      )}
      {!isSearching && cursor !== null && (
        <Button kind="small" onClick={resume}>
          Search further back
        </Button>
      )}
    </div>
  );
}
