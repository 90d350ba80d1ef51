/** One request that an inbox received; opened, it shows headers and body. */
import type { InboxRequest } from '@posthorn/client';
import { useState } from 'react';
import { Link } from '../router.tsx';
import { Badge, type Tone } from '../ui/badge.tsx';
import { BodyBlock, HeaderList } from '../ui/code-block.tsx';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { Icon } from '../ui/icons.tsx';
import { Notice } from '../ui/notice.tsx';
import { At } from '../ui/time.tsx';

const VERDICTS: Record<InboxRequest['signature']['verdict'], readonly [string, Tone]> = {
  valid: ['Signature valid', 'good'],
  invalid: ['Signature invalid', 'bad'],
  unknown: ['Not verified', 'mute'],
};

export function SignatureBadge({ request }: { request: InboxRequest }) {
  const [name, tone] = VERDICTS[request.signature.verdict];
  return <Badge tone={tone}>{name}</Badge>;
}

interface InboxRequestRowProps {
  request: InboxRequest;
  isInitiallyOpen: boolean;
}

export function InboxRequestRow({ request, isInitiallyOpen }: InboxRequestRowProps) {
  const [isOpen, setOpen] = useState(isInitiallyOpen);
  const { number, method, path, headers, answered } = request;
  return (
    <div className="attempt">
      <button
        type="button"
        className="attempt-row inbox-row"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="chevron" />
        <span className="faint num">#{number}</span>
        <span className="truncate mono">{headers['posthorn-event-type'] ?? `${method} ${path}`}</span>
        <span className="wide-only">
          <SignatureBadge request={request} />
        </span>
        <span>
          {answered.reset ? <Badge tone="bad">reset</Badge> : <HttpStatusBadge code={answered.status} />}
        </span>
        <span className="faint num wide-only">
          <At at={request.received_at} precise />
        </span>
      </button>
      {isOpen && <RequestDetail request={request} />}
    </div>
  );
}

function RequestDetail({ request: { headers, body, signature } }: { request: InboxRequest }) {
  const eventId = headers['webhook-id'];
  const attempt = headers['posthorn-attempt'];
  const [title, tone] = VERDICTS[signature.verdict];
  return (
    <div className="attempt-detail">
      <Notice tone={tone} title={title}>
        {signature.detail}
      </Notice>
      {eventId?.startsWith('evt_') && (
        <div>
          <Link to={`/events/${eventId}`}>Show the event</Link>
          {attempt !== undefined && <span className="faint"> · attempt {attempt}</span>}
        </div>
      )}
      <HeaderList headers={headers} />
      {body !== '' && <BodyBlock text={body} label="body" />}
    </div>
  );
}
