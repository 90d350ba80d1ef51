/** The built-in receiver: what arrived, whether it is signed as it should be, and how it answers. */
import { useState } from 'react';
import { call, withQuery } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { Endpoint, Inbox, InboxRequest, Page } from '../api/types.ts';
import { Link, navigate } from '../router.tsx';
import {
  Badge,
  Button,
  Card,
  Copy,
  Empty,
  Failure,
  LinkButton,
  Notice,
  PageHead,
  type Tone,
} from '../ui/basics.tsx';
import { CodeBlock, Headers, Json } from '../ui/code.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { plural, shortUrl, showCount } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Table } from '../ui/table.tsx';
import { Ago, At } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast, toastError } from '../ui/toasts.tsx';
import { CodeBadge } from '../ui/words.tsx';
import { AnswerControls } from './inbox-answer.tsx';

export function InboxesPage() {
  usePageTitle('Inbox');
  const may = useMay();
  const { shownTenant } = useSession();
  const inboxes = useQuery<Page<Inbox>>(withQuery('/v1/inboxes', { tenant: shownTenant }), { pollMs: 2_000 });
  const [making, setMaking] = useState(false);
  if (inboxes.error?.status === 404)
    return (
      <Notice title="No inbox here">
        The built-in receiver is for development. An operator can turn it on with POSTHORN_INBOX=true.
      </Notice>
    );
  const make = async (): Promise<void> => {
    setMaking(true);
    try {
      navigate(`/inbox/${(await createInbox(shownTenant)).token}`);
    } catch (error) {
      toastError(error);
      setMaking(false);
    }
  };
  const create = may.write && (
    <Button kind="primary" icon="plus" disabled={making} onClick={() => void make()}>
      New inbox
    </Button>
  );
  return (
    <>
      <PageHead
        title="Inbox"
        below={
          <p className="soft">
            Throw-away receivers inside Posthorn: look at requests as a receiver sees them, and choose how
            they are answered.
          </p>
        }
      >
        {create}
      </PageHead>
      <Card>
        {inboxes.error !== null && inboxes.data === undefined ? (
          <Failure error={inboxes.error} retry={inboxes.refresh} />
        ) : (
          <Table
            label="Inboxes"
            rows={inboxes.data?.data}
            keyOf={({ token }) => token}
            linkOf={({ token }) => `/inbox/${token}`}
            empty={
              <Empty
                icon="inbox"
                title="No inbox yet"
                actions={
                  <>
                    {create}
                    {may.write && <LinkButton to="/start">Guided start</LinkButton>}
                  </>
                }
              >
                Posthorn deletes an inbox a day after its last use, unless an endpoint delivers to it.
              </Empty>
            }
            columns={[
              {
                name: 'Address',
                link: true,
                cell: ({ url }) => <span className="mono">{shortUrl(url)}</span>,
              },
              { name: 'Tenant', width: 120, wideOnly: true, cell: ({ tenant }) => tenant },
              {
                name: 'Answers',
                width: 110,
                cell: ({ answer }) =>
                  answer.reset ? <Badge tone="bad">resets</Badge> : <CodeBadge code={answer.status} />,
              },
              { name: 'Received', width: 90, num: true, cell: ({ received }) => showCount(received) },
              {
                name: 'Made',
                width: 110,
                num: true,
                wideOnly: true,
                cell: ({ created_at }) => <Ago at={created_at} />,
              },
            ]}
          />
        )}
      </Card>
    </>
  );
}

export const createInbox = (tenant: string | null): Promise<Inbox> =>
  call<Inbox>('POST', '/v1/inboxes', tenant === null ? {} : { tenant });

export function InboxPage({ token }: { token: string }) {
  usePageTitle('Inbox');
  const may = useMay();
  const inbox = useQuery<Inbox>(`/v1/inboxes/${token}`, { pollMs: 1_000 });
  const requests = useQuery<Page<InboxRequest>>(`/v1/inboxes/${token}/requests`, { pollMs: 1_000 });
  const endpoints = useQuery<Page<Endpoint>>(
    inbox.data === undefined ? null : withQuery('/v1/endpoints', { tenant: inbox.data.tenant, limit: 250 }),
  );
  const [connecting, setConnecting] = useState(false);
  if (inbox.data === undefined && inbox.error !== null)
    return (
      <Card>
        <h1 className="sr-only">Inbox</h1>
        <Failure error={inbox.error} retry={inbox.refresh} />
      </Card>
    );
  const data = inbox.data;
  const endpoint = endpoints.data?.data.find(({ url }) => url === data?.url);
  return (
    <>
      <PageHead
        crumb={<Link to="/inbox">Inbox</Link>}
        title={data === undefined ? 'Inbox' : <Copy text={data.url} label="the address" />}
        below={
          <div className="row wrap small faint" style={{ minHeight: 24 }}>
            {data !== undefined && <span>{plural(data.received, 'request')} received</span>}
            {endpoint !== undefined && <Link to={`/endpoints/${endpoint.id}`}>its endpoint</Link>}
          </div>
        }
      >
        {may.write && data !== undefined && endpoint === undefined && endpoints.data !== undefined && (
          <Button kind="primary" icon="plus" onClick={() => setConnecting(true)}>
            Make an endpoint for it
          </Button>
        )}
        {may.write && endpoint !== undefined && (
          <Button
            kind="primary"
            icon="send"
            onClick={() =>
              void call('POST', `/v1/endpoints/${endpoint.id}/test`, {}).then(() => toast('Sent'), toastError)
            }
          >
            Send test event
          </Button>
        )}
        {may.write && (
          <Button
            onClick={() =>
              void call('DELETE', `/v1/inboxes/${token}/requests`).then(
                () => invalidate(`/v1/inboxes/${token}`),
                toastError,
              )
            }
          >
            Clear
          </Button>
        )}
      </PageHead>
      <div className="grid aside">
        <Card title="Requests">
          {requests.data?.data.length === 0 ? (
            <Empty icon="inbox" title="Nothing arrived yet">
              {endpoint === undefined
                ? 'Make an endpoint with this address, or send something to it with curl.'
                : 'Send a test event, and it shows up here.'}
            </Empty>
          ) : (
            requests.data?.data.map((request, index) => (
              <RequestLine key={request.number} request={request} open={index === 0} />
            ))
          )}
        </Card>
        {data !== undefined && <AnswerControls inbox={data} />}
      </div>
      {connecting && data !== undefined && (
        <ConnectDialog inbox={data} onClose={() => setConnecting(false)} />
      )}
    </>
  );
}

/** Quick to fail and to recover, so that one can watch it. */
export const WATCHABLE = {
  retry: { schedule: [0, 2, 3, 4], jitter: 'none' },
  breaker: { consecutive: 3, cooldown_seconds: 4, max_cooldown_seconds: 4 },
};

function ConnectDialog({ inbox, onClose }: { inbox: Inbox; onClose: () => void }) {
  return (
    <FormDialog
      title="Make an endpoint for this inbox"
      submit="Make endpoint"
      onClose={onClose}
      onSubmit={async () => {
        await call('POST', '/v1/endpoints', {
          url: inbox.url,
          tenant: inbox.tenant,
          description: 'Inbox',
          ...WATCHABLE,
        });
        invalidate('/v1/endpoints');
        toast('Endpoint added: it gets every event of the tenant');
        onClose();
      }}
    >
      <p className="soft">
        It subscribes to every event of <strong>{inbox.tenant}</strong>, with a short retry schedule (after 2,
        4 and 6 seconds) and a circuit that opens for 4 seconds, so that you can watch both.
      </p>
    </FormDialog>
  );
}

const VERDICTS: Record<InboxRequest['signature']['verdict'], readonly [string, Tone]> = {
  valid: ['Signature valid', 'good'],
  invalid: ['Signature invalid', 'bad'],
  unknown: ['Not verified', 'mute'],
};

export function Verdict({ request }: { request: InboxRequest }) {
  const [name, tone] = VERDICTS[request.signature.verdict];
  return <Badge tone={tone}>{name}</Badge>;
}

function RequestLine({ request, open }: { request: InboxRequest; open: boolean }) {
  const [shown, setShown] = useState(open);
  const { headers } = request;
  const event = headers['webhook-id'];
  return (
    <div className="attempt">
      <button
        type="button"
        className="attempt-row inbox-row"
        aria-expanded={shown}
        onClick={() => setShown(!shown)}
      >
        <Icon name="chevron" />
        <span className="faint num">#{request.number}</span>
        <span className="truncate mono">
          {headers['posthorn-event-type'] ?? `${request.method} ${request.path}`}
        </span>
        <span className="wide-only">
          <Verdict request={request} />
        </span>
        <span>
          {request.answered.reset ? (
            <Badge tone="bad">reset</Badge>
          ) : (
            <CodeBadge code={request.answered.status} />
          )}
        </span>
        <span className="faint num wide-only">
          <At at={request.received_at} precise />
        </span>
      </button>
      {shown && (
        <div className="attempt-detail">
          <Notice
            tone={VERDICTS[request.signature.verdict][1]}
            title={VERDICTS[request.signature.verdict][0]}
          >
            {request.signature.detail}
          </Notice>
          {event?.startsWith('evt_') && (
            <div>
              <Link to={`/events/${event}`}>Show the event</Link>
              {headers['posthorn-attempt'] !== undefined && (
                <span className="faint"> · attempt {headers['posthorn-attempt']}</span>
              )}
            </div>
          )}
          <Headers headers={headers} />
          {request.body !== '' &&
            (/^\s*[[{]/.test(request.body) ? (
              <Json text={request.body} label="body" />
            ) : (
              <CodeBlock text={request.body} label="body" />
            ))}
        </div>
      )}
    </div>
  );
}
