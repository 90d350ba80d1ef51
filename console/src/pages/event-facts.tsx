/** The payload and the other facts of an event. */
import type { EventWithData as EventSummary } from '@posthorn/client';
import type { ReactNode } from 'react';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Card } from '../ui/card.tsx';
import { HeaderList, JsonBlock } from '../ui/code-block.tsx';
import { sliceMember } from '../ui/json-text.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { At } from '../ui/time.tsx';

/** `text` is the JSON of the response: the payload is cut out of it, so that every digit stays. */
export function EventFacts({ event, text }: { event: EventSummary | undefined; text: string | undefined }) {
  const payload = text === undefined ? null : sliceMember(text, 'data');
  return (
    <div className="grid">
      <Card title="Payload">
        <div className="card-body">
          {payload === null ? <Skeleton width="80%" /> : <JsonBlock text={payload} label="payload" />}
        </div>
      </Card>
      <Card title="Event">
        <dl className="facts card-body">
          <dt>Accepted</dt>
          <dd>{event === undefined ? <Skeleton /> : <At at={event.created_at} />}</dd>
          <dt>Tenant</dt>
          <dd>{event?.tenant ?? <Skeleton />}</dd>
          <dt>Idempotency key</dt>
          <dd className="mono">{event?.idempotency_key ?? '–'}</dd>
          {event !== undefined && <OptionalFacts event={event} />}
        </dl>
        {event !== undefined && Object.keys(event.headers).length > 0 && (
          <div className="card-body">
            <HeaderList headers={event.headers} />
          </div>
        )}
      </Card>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

const EventLink = ({ id }: { id: string }) => (
  <Link to={`/events/${id}`} className="mono">
    {id}
  </Link>
);

function OptionalFacts({ event }: { event: EventSummary }) {
  const { schema_version, schema_errors, channels, deliver_at } = event;
  const { duplicate_of, key_conflict_with, expunged_at, expunged_by } = event;
  return (
    <>
      {schema_version !== null && <Fact name="Schema version">{schema_version}</Fact>}
      {schema_errors.length > 0 && (
        <Fact name="Schema errors">
          <ul className="warn">
            {schema_errors.map(({ path, message }) => (
              <li key={`${path}${message}`}>
                <span className="mono">{path}</span> {message}
              </li>
            ))}
          </ul>
        </Fact>
      )}
      {channels.length > 0 && (
        <Fact name="Channels">
          <span className="row wrap">
            {channels.map((channel) => (
              <Badge key={channel}>{channel}</Badge>
            ))}
          </span>
        </Fact>
      )}
      {deliver_at !== null && (
        <Fact name="Deliver at">
          <At at={deliver_at} />
        </Fact>
      )}
      {duplicate_of !== null && (
        <Fact name="Duplicate of">
          <EventLink id={duplicate_of} />, so it is not sent
        </Fact>
      )}
      {key_conflict_with !== null && (
        <Fact name="Key conflict with">
          <EventLink id={key_conflict_with} />, which has other content, so it is sent without the key
        </Fact>
      )}
      {expunged_at !== null && (
        <Fact name="Payload deleted">
          <At at={expunged_at} />
          {expunged_by !== null && ` by ${expunged_by}`}
        </Fact>
      )}
    </>
  );
}
