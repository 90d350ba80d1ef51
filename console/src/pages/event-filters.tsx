import { type FormEvent, useState } from 'react';
import { navigate } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { deliveryStatuses, describeStatus } from '../ui/delivery-status.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { findIdLink } from '../ui/id-links.ts';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';
import { PayloadFilter } from './payload-search.tsx';

const OUTCOMES = [
  ['', 'Any outcome'],
  ...deliveryStatuses.map(
    (status) => [status, `With ${describeStatus(status).toLowerCase()} deliveries`] as const,
  ),
  ['waiting', 'With pending or retrying deliveries'],
  ['none', 'Sent to no endpoint'],
] as const;

export const EVENT_FILTERS = ['type', 'has', 'idempotency_key', 'where', 'hours', 'since', 'until'] as const;

export function EventFilters({ isFiltered, path }: { isFiltered: boolean; path: string }) {
  return (
    <div className="filters">
      <IdSearch />
      <PayloadFilter />
      <FilterInput name="type" label="Type" placeholder="Type, e.g. order.created" />
      <FilterInput name="idempotency_key" label="Idempotency key" placeholder="Idempotency key" />
      <FilterSelect name="has" label="Outcome" options={OUTCOMES} />
      <TimeRangeFilter />
      <ExportButton path={path} name="events" />
      {isFiltered && (
        <Button kind="quiet" onClick={() => navigate('/events')}>
          Clear
        </Button>
      )}
    </div>
  );
}

/** Opens the page of an id. */
function IdSearch() {
  const [text, setText] = useState('');
  const [isInvalid, setInvalid] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const link = findIdLink(text);
    setInvalid(link === null);
    if (link !== null) navigate(link.to);
  };
  return (
    <form onSubmit={submit} className="row grow" style={{ flex: '1 1 180px' }}>
      <input
        className="input long mono"
        type="search"
        placeholder="Id: evt_…, dlv_…"
        aria-label="Find by id"
        aria-invalid={isInvalid}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setInvalid(false);
        }}
      />
    </form>
  );
}
