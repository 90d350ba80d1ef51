import type { ReactNode } from 'react';
import type { StreamMessage } from '../api/stream.ts';
import { Link } from '../router.tsx';
import { Badge, type Tone } from '../ui/badge.tsx';
import type { EndpointName } from '../ui/endpoint-name.ts';
import { describeError } from '../ui/failure-text.ts';
import { formatClock, formatMs, plural } from '../ui/format.ts';

interface TailRowProps {
  message: StreamMessage;
  nameEndpoint: (id: string) => EndpointName;
}

const toText = (value: unknown): string => (value === null || value === undefined ? '' : String(value));

export function TailRow(props: TailRowProps) {
  switch (props.message.event) {
    case 'event.accepted':
      return <AcceptedRow {...props} />;
    case 'attempt':
      return <AttemptRow {...props} />;
    case 'endpoint':
      return <EndpointRow {...props} />;
    default:
      return <OtherRow {...props} />;
  }
}

interface RowProps {
  data: StreamMessage['data'];
  tone: Tone;
  badge: string;
  children: ReactNode;
}

function Row({ data, tone, badge, children }: RowProps) {
  const at = toText(data.at ?? data.created_at);
  return (
    <div className="tail-row fresh">
      <span className="faint tail-time">{at === '' ? '' : formatClock(at)}</span>
      <Badge tone={tone}>{badge}</Badge>
      {children}
    </div>
  );
}

function AcceptedRow({ message: { data } }: TailRowProps) {
  return (
    <Row data={data} tone="info" badge="accepted">
      <Link to={`/events/${toText(data.id)}`} className="truncate">
        {toText(data.type)}
      </Link>
      <span className="faint truncate">{toText(data.id)}</span>
      <span className="num faint wide-only">
        {data.deliveries === undefined ? '' : plural(Number(data.deliveries), 'delivery', 'deliveries')}
      </span>
    </Row>
  );
}

function AttemptRow({ message: { data }, nameEndpoint }: TailRowProps) {
  const tone = data.outcome === 'delivered' ? 'good' : data.outcome === 'dead' ? 'bad' : 'warn';
  const result =
    data.status_code === null ? describeError(toText(data.error_class)) : toText(data.status_code);
  const endpointId = toText(data.endpoint_id);
  return (
    <Row data={data} tone={tone} badge={toText(data.outcome)}>
      <Link to={`/events/${toText(data.event_id)}?delivery=${toText(data.delivery_id)}`} className="truncate">
        {toText(data.event_type)}
      </Link>
      <span className="soft truncate">
        #{toText(data.number)} · {result} ·{' '}
        <Link to={`/endpoints/${endpointId}`} title={nameEndpoint(endpointId).detail ?? endpointId}>
          {nameEndpoint(endpointId).name}
        </Link>
      </span>
      <span className="num faint wide-only">{formatMs(data.duration_ms as number | null)}</span>
    </Row>
  );
}

function EndpointRow({ message: { data }, nameEndpoint }: TailRowProps) {
  const endpointId = toText(data.endpoint_id);
  return (
    <Row data={data} tone="accent" badge="endpoint">
      <Link to={`/endpoints/${endpointId}`} className="truncate">
        {nameEndpoint(endpointId).name}
      </Link>
      <span className="soft truncate">{describeChange(data)}</span>
    </Row>
  );
}

/** What changed about the endpoint: "circuit open", "settings changed: paused". */
function describeChange({ change, circuit, deleted, enabled, paused }: StreamMessage['data']): string {
  if (change === 'circuit') return `circuit ${toText(circuit).replace('_', '-')}`;
  if (deleted === true) return 'deleted';
  return `settings changed: ${enabled === false ? 'disabled' : paused === true ? 'paused' : 'enabled'}`;
}

const GAPS: Record<string, string> = {
  dropped: 'Lines are missing: this page was too slow to read them',
  sampled: 'Lines are missing: too many at once, only a sample is shown',
};

function OtherRow({ message: { event, data } }: TailRowProps) {
  return (
    <Row data={data} tone={event in GAPS ? 'warn' : 'mute'} badge={event}>
      <span className="truncate">{GAPS[event] ?? JSON.stringify(data)}</span>
    </Row>
  );
}
