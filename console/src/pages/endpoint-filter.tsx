/** A filter as JSON, tried on an event before it decides over real ones. */
import { useEffect, useState } from 'react';
import { call, withQuery } from '../api/client.ts';
import { asApiError, invalidate, useQuery } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Endpoint, EventDetail, EventSummary, Page } from '../api/types.ts';
import { Button, Card, Notice } from '../ui/basics.tsx';
import { errorAt, TextArea } from '../ui/fields.tsx';
import { toast } from '../ui/toasts.tsx';
import { parseJson } from './test-event.tsx';

interface Trial {
  readonly matches: boolean;
  readonly reason: string | null;
}

const EXAMPLE = '{\n  "data.amount": { "$gte": 100 }\n}';

export function FilterEditor({ endpoint }: { endpoint: Endpoint }) {
  const may = useMay();
  const [text, setText] = useState(() =>
    endpoint.filter == null ? '' : JSON.stringify(endpoint.filter, null, 2),
  );
  const [sample, setSample] = useSample(endpoint.tenant);
  const [trial, setTrial] = useState<Trial | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    setTrial(null);
    try {
      await work();
    } catch (failure) {
      const problem = asApiError(failure);
      setError(errorAt(problem.errors, 'filter') ?? problem.message);
    } finally {
      setBusy(false);
    }
  };
  const filter = (): unknown => (text.trim() === '' ? null : parseJson(text));
  const attempt = () =>
    run(async () =>
      setTrial(await call<Trial>('POST', '/v1/filters/try', { filter: filter(), event: parseJson(sample) })),
    );
  const save = () =>
    run(async () => {
      await call('PATCH', `/v1/endpoints/${endpoint.id}`, { filter: filter() });
      invalidate('/v1/endpoints');
      toast('Filter saved: it applies to events from now on');
    });

  return (
    <Card
      title="Filter"
      foot={
        <>
          <Button icon="play" disabled={busy} onClick={() => void attempt()}>
            Try it
          </Button>
          {may.write && (
            <Button kind="primary" disabled={busy} onClick={() => void save()}>
              Save filter
            </Button>
          )}
          <span className="grow" aria-live="polite">
            {trial !== null && (
              <span className={trial.matches ? 'good' : 'warn'}>
                {trial.matches
                  ? 'This event would be sent.'
                  : `This event would not be sent${trial.reason ? `: ${trial.reason}` : '.'}`}
              </span>
            )}
          </span>
        </>
      }
    >
      <div className="card-body stack">
        <p className="soft">
          Of the events that the endpoint subscribes to, only those that fit the filter are sent. No filter:
          all of them.
        </p>
        <div className="grid two">
          <TextArea
            label="Filter (JSON)"
            rows={14}
            value={text}
            onChange={setText}
            placeholder={EXAMPLE}
            error={error ?? undefined}
          />
          <TextArea
            label="Try it on this event"
            rows={14}
            value={sample}
            onChange={setSample}
            hint="The tenant's latest event. Change it as you like: nothing is sent."
          />
        </div>
        {error?.includes('/v1/filters/try') && <Notice>This server does not offer the try-out.</Notice>}
      </div>
    </Card>
  );
}

/** Something real to begin with. */
function useSample(tenant: string): [string, (text: string) => void] {
  const [text, setText] = useState<string | null>(null);
  const latest = useQuery<Page<EventSummary>>(withQuery('/v1/events', { tenant, limit: 1 })).data?.data[0];
  const event = useQuery<EventDetail>(latest === undefined ? null : `/v1/events/${latest.id}`).data;
  useEffect(() => {
    if (event !== undefined)
      setText((before) => before ?? JSON.stringify({ type: event.type, data: event.data }, null, 2));
  }, [event]);
  return [text ?? '{\n  "type": "order.created",\n  "data": { "amount": 120 }\n}', setText];
}
