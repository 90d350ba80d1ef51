/** One attempt of a delivery; opened, it shows the request and the response. */
import type { Attempt } from '@posthorn/client';
import { useState } from 'react';
import { asText, useQuery } from '../api/query.ts';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { BodyBlock, HeaderList, JsonBlock } from '../ui/code-block.tsx';
import { useCopy } from '../ui/copy-button.tsx';
import { type SentRequest, toCurl } from '../ui/curl.ts';
import { describeError, stripTitle } from '../ui/failure-text.ts';
import { formatMs, formatSeconds } from '../ui/format.ts';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { Icon } from '../ui/icons.tsx';
import { Notice } from '../ui/notice.tsx';
import { At } from '../ui/time.tsx';
import { TimingBar, TimingLegend } from './attempt-timing.tsx';
import { BatchSiblings } from './batch.tsx';

const OUTCOMES: Record<Attempt['outcome'], string> = {
  delivered: 'Delivered',
  retry: 'Will be retried',
  dead: 'Last attempt failed',
  superseded: 'Ignored: another worker took over',
};

interface AttemptRowProps {
  attempt: Attempt;
  /** The duration of the longest attempt: the full width of the timing bar. */
  longestMs: number;
  acceptedAt: string;
  isInitiallyOpen: boolean;
}

export function AttemptRow({ attempt, longestMs, acceptedAt, isInitiallyOpen }: AttemptRowProps) {
  const [isOpen, setOpen] = useState(isInitiallyOpen);
  const ageSeconds = Math.max(0, (Date.parse(attempt.started_at) - Date.parse(acceptedAt)) / 1000);
  return (
    <div className="attempt">
      <button type="button" className="attempt-row" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" />
        <span className="faint num">#{attempt.number}</span>
        <span>
          <HttpStatusBadge code={attempt.status_code} />
        </span>
        <span className="truncate soft wide-only">
          {attempt.error === null ? OUTCOMES[attempt.outcome] : describeError(attempt.error.class)}
          {attempt.trigger !== 'auto' && ` · ${attempt.trigger}`}
        </span>
        <span className="wide-only">
          <TimingBar attempt={attempt} scaleMs={longestMs} />
        </span>
        <span className="num soft">{formatMs(attempt.duration_ms)}</span>
        <span
          className="num small faint wide-only"
          title={`${formatSeconds(ageSeconds)} after the event was accepted`}
        >
          +{formatSeconds(ageSeconds)}
        </span>
      </button>
      {isOpen && <AttemptDetail attempt={attempt} />}
    </div>
  );
}

function AttemptDetail({ attempt }: { attempt: Attempt }) {
  const { error } = attempt;
  return (
    <div className="attempt-detail">
      <div className="row wrap small soft">
        <span>
          Started <At at={attempt.started_at} precise />
        </span>
        {attempt.trigger !== 'auto' && <Badge tone="accent">{attempt.trigger}</Badge>}
        <span className="mono truncate">{attempt.url}</span>
      </div>
      {attempt.batch_id !== null && (
        <BatchSiblings batchId={attempt.batch_id} deliveryId={attempt.delivery_id} />
      )}
      <TimingLegend attempt={attempt} />
      {error !== null && (
        <Notice tone="warn" title={describeError(error.class)}>
          {stripTitle(describeError(error.class), error.hint) ?? error.message}
        </Notice>
      )}
      <div className="grid exchange">
        <ResponseView attempt={attempt} />
        <RequestView attempt={attempt} />
      </div>
    </div>
  );
}

function ResponseView({ attempt }: { attempt: Attempt }) {
  const { status_code: code, response_headers: headers, response_body: body } = attempt;
  return (
    <div className="stack">
      <h3>Response {code !== null && <span className="faint">{code}</span>}</h3>
      {headers === null ? <p className="soft">There was no response.</p> : <HeaderList headers={headers} />}
      {body !== null && body !== '' && (
        <>
          <BodyBlock text={body} label="response body" />
          {attempt.response_truncated && (
            <p className="small faint">Truncated: Posthorn stores only the beginning.</p>
          )}
        </>
      )}
    </div>
  );
}

function CopyAsCurl({ request }: { request: SentRequest }) {
  const [isCopied, copy] = useCopy(toCurl(request));
  return (
    <Button kind="small quiet" icon={isCopied ? 'check' : 'copy'} onClick={copy}>
      Copy as curl
    </Button>
  );
}

function RequestView({ attempt: { delivery_id, number, url, request_headers } }: { attempt: Attempt }) {
  const body = useQuery<string>(asText(`/v1/deliveries/${delivery_id}/attempts/${number}/request`));
  return (
    <div className="stack">
      <div className="row">
        <h3 className="grow">Request</h3>
        {body.data !== undefined && (
          <CopyAsCurl request={{ url, headers: request_headers, body: body.data }} />
        )}
      </div>
      <HeaderList headers={request_headers} />
      {body.data !== undefined && <JsonBlock text={body.data} label="request body" />}
      {body.error !== null && <p className="small faint">{body.error.message}</p>}
    </div>
  );
}
