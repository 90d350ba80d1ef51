/** One delivery: where it stands, what to do about it, and every attempt with what was sent and answered. */
import { useEffect, useRef, useState } from 'react';
import { call } from '../api/client.ts';
import { asText, useQuery } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Attempt, Delivery, Endpoint, Page } from '../api/types.ts';
import { Link, usePlace } from '../router.tsx';
import { Badge, Button, Copy, Notice, Skeleton } from '../ui/basics.tsx';
import { CodeBlock, Headers, Json } from '../ui/code.tsx';
import { shortUrl, showMs, showSeconds } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { At } from '../ui/time.tsx';
import { toast, toastError } from '../ui/toasts.tsx';
import { CodeBadge, errorName, hintAfter, StatusBadge, WaitingFor, whyDead } from '../ui/words.tsx';
import { TimingBar, TimingLegend } from './timing.tsx';

export function DeliveryCard({
  delivery,
  open,
  refresh,
}: {
  delivery: Delivery;
  open: boolean;
  refresh: () => Promise<void>;
}) {
  const [shown, setShown] = useState(open);
  const card = useRef<HTMLElement>(null);
  const chosen = usePlace().query.get('delivery') === delivery.id;
  useEffect(() => {
    if (chosen) card.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const endpoint = useQuery<Endpoint>(`/v1/endpoints/${delivery.endpoint_id}`).data;
  const waits = delivery.status === 'pending' || delivery.status === 'retrying';
  const attempts = useQuery<Page<Attempt>>(shown ? `/v1/deliveries/${delivery.id}/attempts` : null, {
    pollMs: waits ? 1_000 : 0,
  });
  // Another attempt was made since they were read.
  const { refresh: readAgain } = attempts;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the number changes
  useEffect(() => void readAgain(), [delivery.attempts, delivery.status]);
  const rows = attempts.data?.data;
  const last = rows?.at(-1);
  return (
    <section className="card" ref={card} aria-label={`Delivery to ${endpoint?.url ?? delivery.endpoint_id}`}>
      <div className="delivery-head">
        <StatusBadge status={delivery.status} />
        <div className="grow" style={{ flexBasis: 180 }}>
          <Link
            to={`/endpoints/${delivery.endpoint_id}`}
            className="truncate"
            style={{ display: 'block', fontWeight: 550 }}
          >
            {endpoint === undefined ? delivery.endpoint_id : shortUrl(endpoint.url)}
          </Link>
          <div className="small faint row wrap" style={{ gap: 10 }}>
            <Copy text={delivery.id} />
            <span>
              {delivery.attempts} of {delivery.max_attempts ?? '?'} attempts
            </span>
            {delivery.replays > 0 && <span>replayed {delivery.replays}×</span>}
            {waits && (
              <span className="warn">
                <WaitingFor delivery={delivery} />
              </span>
            )}
          </div>
        </div>
        <DeliveryActions delivery={delivery} refresh={refresh} />
      </div>
      {delivery.status !== 'delivered' && (last?.error != null || delivery.reason !== null) && (
        <div className="delivery-note">
          <Notice tone={delivery.status === 'dead' ? 'bad' : 'warn'} title={noticeTitle(delivery, last)}>
            {last?.error != null && hintAfter(errorName(last.error.class), last.error.hint)}
          </Notice>
        </div>
      )}
      {shown ? (
        <div className="attempts">
          {rows === undefined && (
            <div className="attempt attempt-row">
              <Skeleton width={14} />
            </div>
          )}
          {rows?.toReversed().map((attempt, index) => (
            <AttemptLine
              key={`${attempt.number}-${attempt.started_at}`}
              attempt={attempt}
              all={rows}
              since={delivery.created_at}
              open={index === 0 && chosen}
            />
          ))}
        </div>
      ) : (
        <div className="card-foot" style={{ padding: '4px 8px' }}>
          <Button kind="small quiet" icon="chevron" onClick={() => setShown(true)}>
            Show attempts
          </Button>
        </div>
      )}
    </section>
  );
}

function noticeTitle({ status, reason }: Delivery, last: Attempt | undefined): string {
  const waits = status === 'pending' || status === 'retrying';
  const title = whyDead(last?.error?.class ?? null, waits ? null : reason);
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function DeliveryActions({ delivery, refresh }: { delivery: Delivery; refresh: () => Promise<void> }) {
  const may = useMay();
  if (!may.write) return null;
  const { id, status } = delivery;
  const act = async (action: string): Promise<void> => {
    try {
      await call('POST', `/v1/deliveries/${id}/${action}`, action === 'discard' ? {} : undefined);
      if (action === 'discard') toast('Discarded', { undo: () => void act('restore'), forMs: 9_500 });
      else toast(action === 'restore' ? 'Back among the dead letters' : 'Replaying');
    } catch (error) {
      toastError(error);
    }
    await refresh();
  };
  const waits = status === 'pending' || status === 'retrying';
  return (
    <div className="row">
      {status === 'dead' && (
        <Button kind="small" icon="trash" onClick={() => void act('discard')}>
          Discard
        </Button>
      )}
      <Button kind="small" icon="replay" onClick={() => void act('replay')}>
        {waits ? 'Try now' : status === 'delivered' ? 'Send again' : 'Replay'}
      </Button>
    </div>
  );
}

const OUTCOMES: Record<Attempt['outcome'], string> = {
  delivered: 'delivered',
  retry: 'will be tried again',
  dead: 'given up',
  superseded: 'answer not used',
};

function AttemptLine({
  attempt,
  all,
  since,
  open,
}: {
  attempt: Attempt;
  all: readonly Attempt[];
  since: string;
  open: boolean;
}) {
  const [shown, setShown] = useState(open);
  const sinceSeconds = Math.max(0, (Date.parse(attempt.started_at) - Date.parse(since)) / 1000);
  const longest = Math.max(...all.map(({ duration_ms }) => duration_ms), 1);
  return (
    <div className="attempt">
      <button type="button" className="attempt-row" aria-expanded={shown} onClick={() => setShown(!shown)}>
        <Icon name="chevron" />
        <span className="faint num">#{attempt.number}</span>
        <span>
          <CodeBadge code={attempt.status_code} />
        </span>
        <span className="truncate soft wide-only">
          {attempt.error === null ? OUTCOMES[attempt.outcome] : errorName(attempt.error.class)}
          {attempt.trigger !== 'auto' && ` · ${attempt.trigger}`}
        </span>
        <span className="wide-only">
          <TimingBar attempt={attempt} scaleMs={longest} />
        </span>
        <span className="num soft">{showMs(attempt.duration_ms)}</span>
        <span
          className="num small faint wide-only"
          title={`${showSeconds(sinceSeconds)} after it was accepted`}
        >
          +{showSeconds(sinceSeconds)}
        </span>
      </button>
      {shown && <AttemptDetail attempt={attempt} />}
    </div>
  );
}

function AttemptDetail({ attempt }: { attempt: Attempt }) {
  const request = useQuery<string>(
    asText(`/v1/deliveries/${attempt.delivery_id}/attempts/${attempt.number}/request`),
  );
  return (
    <div className="attempt-detail">
      <div className="row wrap small soft">
        <span>
          Started <At at={attempt.started_at} precise />
        </span>
        {attempt.trigger !== 'auto' && <Badge tone="accent">{attempt.trigger}</Badge>}
        <span className="mono truncate">{attempt.url}</span>
      </div>
      <TimingLegend attempt={attempt} />
      {attempt.error !== null && (
        <Notice tone="warn" title={errorName(attempt.error.class)}>
          {hintAfter(errorName(attempt.error.class), attempt.error.hint) ?? attempt.error.message}
        </Notice>
      )}
      <div className="grid exchange">
        <div className="stack">
          <h3>
            Response {attempt.status_code !== null && <span className="faint">{attempt.status_code}</span>}
          </h3>
          {attempt.response_headers === null ? (
            <p className="soft">No answer came.</p>
          ) : (
            <Headers headers={attempt.response_headers} />
          )}
          {attempt.response_body !== null && attempt.response_body !== '' && (
            <>
              {/^\s*[[{]/.test(attempt.response_body) ? (
                <Json text={attempt.response_body} label="response body" />
              ) : (
                <CodeBlock text={attempt.response_body} label="response body" />
              )}
              {attempt.response_truncated && (
                <p className="small faint">Longer than what is kept: this is the beginning.</p>
              )}
            </>
          )}
        </div>
        <div className="stack">
          <h3>Request</h3>
          <Headers headers={attempt.request_headers} />
          {request.data !== undefined && <Json text={request.data} label="request body" />}
          {request.error !== null && <p className="small faint">{request.error.message}</p>}
        </div>
      </div>
    </div>
  );
}
