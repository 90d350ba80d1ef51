/** The editor of an endpoint's filter, with a sample event to try it on. */
import type { ChangedEndpoint, Endpoint, EventWithData, FilterTried, Page } from '@posthorn/client';
import { useEffect, useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { asApiError, invalidate, useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { findFieldError, TextArea } from '../ui/fields.tsx';
import { parseJson, parseOptionalJson } from '../ui/json-text.ts';
import { showToast } from '../ui/toasts.tsx';
import { EndpointWarnings } from './endpoint-warnings.tsx';
import { FilterMatchCount } from './filter-match-count.tsx';

const EXAMPLE_FILTER = '{\n  "data.amount": { "$gte": 100 }\n}';
const EXAMPLE_EVENT = '{\n  "type": "order.created",\n  "data": { "amount": 120 }\n}';

export function FilterEditor({ endpoint }: { endpoint: Endpoint }) {
  const { canEditEndpoints } = usePermissions();
  const [text, setText] = useState(() =>
    endpoint.filter === null ? '' : JSON.stringify(endpoint.filter, null, 2),
  );
  const [sample, setSample] = useSampleEvent(endpoint.tenant);
  const [result, setResult] = useState<FilterTried | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [warnings, setWarnings] = useState<ChangedEndpoint['warnings']>([]);
  const [isBusy, setBusy] = useState(false);

  const run = async (action: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    setResult(null);
    setWarnings([]);
    try {
      await action();
    } catch (failure) {
      const { errors, message } = asApiError(failure);
      setError(findFieldError(errors, 'filter') ?? message);
    } finally {
      setBusy(false);
    }
  };
  const tryFilter = () =>
    run(async () => {
      const body = { filter: parseOptionalJson(text), event: parseJson(sample) };
      setResult(await callApi<FilterTried>('POST', '/v1/filters/try', body));
    });
  const saveFilter = () =>
    run(async () => {
      const changed = await callApi<ChangedEndpoint>('PATCH', `/v1/endpoints/${endpoint.id}`, {
        filter: parseOptionalJson(text),
      });
      setWarnings(changed.warnings);
      invalidate('/v1/endpoints');
      showToast('Filter saved. It applies to new events.');
    });

  return (
    <Card
      title="Filter"
      foot={
        <>
          <Button icon="play" disabled={isBusy} onClick={() => void tryFilter()}>
            Try filter
          </Button>
          {canEditEndpoints && (
            <Button kind="primary" disabled={isBusy} onClick={() => void saveFilter()}>
              Save filter
            </Button>
          )}
          <FilterMatchCount filter={text} events={endpoint.events.join(',')} tenant={endpoint.tenant} />
          <span className="grow" aria-live="polite">
            {result !== null && <FilterResult result={result} />}
          </span>
        </>
      }
    >
      <div className="card-body stack">
        <p className="soft">
          Posthorn sends only the subscribed events that match this filter. Without a filter it sends all of
          them.
        </p>
        <div className="grid two">
          <TextArea
            label="Filter (JSON)"
            rows={14}
            value={text}
            onChange={setText}
            placeholder={EXAMPLE_FILTER}
            error={error ?? undefined}
          />
          <TextArea
            label="Sample event (JSON)"
            rows={14}
            value={sample}
            onChange={setSample}
            hint="The tenant's latest event. You can edit it: trying a filter sends nothing."
          />
        </div>
        <EndpointWarnings warnings={warnings} />
      </div>
    </Card>
  );
}

function FilterResult({ result: { matches, reason } }: { result: FilterTried }) {
  if (matches) return <span className="good">This event would be sent.</span>;
  return <span className="warn">This event would not be sent{reason === null ? '.' : `: ${reason}`}</span>;
}

/** The latest event of the tenant as text, until the user edits it. */
function useSampleEvent(tenant: string): [string, (text: string) => void] {
  const [text, setText] = useState<string | null>(null);
  const latest = useQuery<Page<{ id: string }>>(withQuery('/v1/events', { tenant, limit: 1 })).data?.data[0];
  const event = useQuery<EventWithData>(latest === undefined ? null : `/v1/events/${latest.id}`).data;
  useEffect(() => {
    if (event !== undefined)
      setText((before) => before ?? JSON.stringify({ type: event.type, data: event.data }, null, 2));
  }, [event]);
  return [text ?? EXAMPLE_EVENT, setText];
}
