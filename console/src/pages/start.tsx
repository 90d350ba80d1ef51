/** Two minutes from nothing to retries, breaker, dead letter and replay, with the built-in receiver. */
import { type ReactNode, useEffect, useState } from 'react';
import { ApiError, call } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { Delivery, Endpoint, Inbox, InboxRequest, Page } from '../api/types.ts';
import { Link, navigate } from '../router.tsx';
import { Button, Copy, Notice, PageHead } from '../ui/basics.tsx';
import { plural } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast, toastError } from '../ui/toasts.tsx';
import { CircuitBadge, StatusBadge, WaitingFor } from '../ui/words.tsx';
import { toDelivery } from './delivery-list.tsx';
import { createInbox, Verdict, WATCHABLE } from './inbox.tsx';
import { setAnswer } from './inbox-answer.tsx';

/** What has been made so far. In the tab's storage, so that one can look elsewhere and come back. */
interface Progress {
  readonly token?: string;
  readonly tenant?: string;
  readonly endpointId?: string;
  readonly firstEvent?: string;
  readonly secondEvent?: string;
  readonly replayed?: boolean;
}

const STORED = 'posthorn.start';

function useProgress(): [Progress, (changes: Progress | null) => void] {
  const [progress, setProgress] = useState<Progress>(
    () => JSON.parse(sessionStorage.getItem(STORED) ?? '{}') as Progress,
  );
  useEffect(() => sessionStorage.setItem(STORED, JSON.stringify(progress)), [progress]);
  return [progress, (changes) => setProgress(changes === null ? {} : { ...progress, ...changes })];
}

export function StartPage() {
  usePageTitle('Guided start');
  const may = useMay();
  if (!may.inbox)
    return (
      <Notice title="No inbox here">
        The guided start uses the built-in receiver, which this server does not have.
      </Notice>
    );
  if (!may.write) return <Notice tone="warn">This key may only read.</Notice>;
  return <Steps />;
}

function Steps() {
  const { shownTenant } = useSession();
  const [progress, set] = useProgress();
  const { token, endpointId, firstEvent, secondEvent, replayed } = progress;
  const inbox = useQuery<Inbox>(token === undefined ? null : `/v1/inboxes/${token}`, { pollMs: 1_000 });
  const endpoint = useQuery<Endpoint>(endpointId === undefined ? null : `/v1/endpoints/${endpointId}`, {
    pollMs: 1_000,
  });
  const requests =
    useQuery<Page<InboxRequest>>(token === undefined ? null : `/v1/inboxes/${token}/requests`, {
      pollMs: 700,
    }).data?.data ?? [];
  const first = useDelivery(firstEvent);
  const second = useDelivery(secondEvent);
  const lost = inbox.error?.status === 404 || endpoint.error?.status === 404;

  const begin = async (): Promise<void> => {
    const made = await createInbox(shownTenant);
    const { id } = await call<Endpoint>('POST', '/v1/endpoints', {
      url: made.url,
      tenant: made.tenant,
      description: 'Guided start',
      // Its events are addressed to it. It gets no other events of the tenant.
      events: ['guided.start'],
      ...WATCHABLE,
    });
    invalidate('/v1/endpoints');
    set({ token: made.token, tenant: made.tenant, endpointId: id });
  };
  const cleanUp = async (): Promise<void> => {
    if (endpointId !== undefined) await remove(`/v1/endpoints/${endpointId}`);
    if (token !== undefined) await remove(`/v1/inboxes/${token}`);
    invalidate('/v1/endpoints', '/v1/inboxes');
    set(null);
  };
  const startOver = (): void => void cleanUp().catch(toastError);
  const publish = (order: number) =>
    call<{ id: string }>('POST', '/v1/events', {
      type: 'order.created',
      data: { order, amount: 120 },
      tenant: progress.tenant,
      endpoint_ids: [endpointId],
    });
  const arrived = requests.find(({ headers }) => headers['webhook-id'] === firstEvent);
  const tries = requests.filter(({ headers }) => headers['webhook-id'] === secondEvent).length;
  const delivered = replayed === true && second?.status === 'delivered';

  return (
    <>
      <PageHead
        title="Guided start"
        below={
          <p className="soft">
            A webhook that arrives, one that fails, and how you get it back. About two minutes, no receiver
            needed.
          </p>
        }
      >
        {token !== undefined && <Button onClick={startOver}>Start over</Button>}
      </PageHead>
      {lost && (
        <Notice tone="warn" title="The inbox or its endpoint was deleted">
          <Button kind="small" onClick={startOver}>
            Start over
          </Button>
        </Notice>
      )}
      <ol className="steps">
        <Step
          number={1}
          state={endpointId === undefined ? 'now' : 'done'}
          title="Make an endpoint that receives in this console"
        >
          {endpointId === undefined ? (
            <>
              <p className="soft">
                An endpoint is an address and what it wants to get. This one leads to an inbox inside
                Posthorn.
              </p>
              <Act onClick={begin}>Create inbox endpoint</Act>
            </>
          ) : (
            <div className="row wrap small soft">
              <Link to={`/endpoints/${endpointId}`}>Endpoint</Link>
              <Link to={`/inbox/${token}`}>Inbox</Link>
              {inbox.data !== undefined && <Copy text={inbox.data.url} label="the address" />}
            </div>
          )}
        </Step>

        <Step
          number={2}
          state={stateOf(endpointId !== undefined, first?.status === 'delivered')}
          title="Publish an event and see it arrive"
        >
          {firstEvent === undefined ? (
            <>
              <p className="soft">Your application would do this with one POST to /v1/events.</p>
              <Act onClick={async () => set({ firstEvent: (await publish(1)).id })}>Publish test event</Act>
            </>
          ) : (
            <div className="watch" aria-live="polite">
              {arrived === undefined ? (
                <span className="soft">On its way…</span>
              ) : (
                <span className="row wrap">
                  Request #{arrived.number} arrived <Verdict request={arrived} />
                </span>
              )}
              <DeliveryState delivery={first} />
            </div>
          )}
        </Step>

        <Step
          number={3}
          state={stateOf(first?.status === 'delivered', second?.status === 'dead' || replayed === true)}
          title="Make the receiver fail, and watch the retries"
        >
          {secondEvent === undefined ? (
            <>
              <p className="soft">
                The inbox answers 503 from now on. The event is tried four times within half a minute; the
                usual schedule takes days.
              </p>
              <Act
                onClick={async () => {
                  await setAnswer({ token: token! }, { status: 503 });
                  set({ secondEvent: (await publish(2)).id });
                }}
              >
                Answer 503 and publish
              </Act>
            </>
          ) : (
            <div className="watch" aria-live="polite">
              <span>{plural(tries, 'request')} arrived, each answered 503</span>
              <DeliveryState delivery={second} />
              {endpoint.data !== undefined && endpoint.data.health.circuit !== 'closed' && (
                <span className="row wrap">
                  Circuit <CircuitBadge circuit={endpoint.data.health.circuit} />
                  <span className="soft">
                    Three failures in a row: nothing is sent until a probe succeeds.
                  </span>
                </span>
              )}
              {second?.status === 'dead' && (
                <span className="soft">
                  Given up after {second.attempts} attempts: it is a{' '}
                  <Link to="/dead-letters">dead letter</Link> now, and nothing is lost.
                </span>
              )}
            </div>
          )}
        </Step>

        <Step
          number={4}
          state={stateOf(second?.status === 'dead' || replayed === true, delivered)}
          title="Repair it, and replay"
        >
          {replayed !== true ? (
            <>
              <p className="soft">
                The inbox answers 200 again. A replay sends the same event once more, with the same id.
              </p>
              <Act
                onClick={async () => {
                  await setAnswer({ token: token! }, { status: 200 });
                  await call('POST', `/v1/deliveries/${second!.id}/replay`);
                  set({ replayed: true });
                }}
              >
                Answer 200 and replay
              </Act>
            </>
          ) : (
            <div className="watch" aria-live="polite">
              <DeliveryState delivery={second} />
            </div>
          )}
        </Step>
      </ol>
      {delivered && (
        <div style={{ marginTop: 14 }}>
          <Notice tone="good" title="That is all there is to it">
            <Link to={toDelivery(second!)}>See every attempt of it</Link>,{' '}
            <Link to="/endpoints/new">add an endpoint of your own</Link>, or go to the{' '}
            <Link to="/">overview</Link>.
            <p className="soft">The endpoint and the inbox of this tour are no longer needed.</p>
            <Act
              onClick={async () => {
                await cleanUp();
                toast('Deleted the endpoint and the inbox of the tour');
                navigate('/');
              }}
            >
              Finish and clean up
            </Act>
          </Notice>
        </div>
      )}
    </>
  );
}

/** Deletes it, or finds that it is deleted already. */
async function remove(path: string): Promise<void> {
  await call('DELETE', path).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}

const stateOf = (ready: boolean, done: boolean): 'done' | 'now' | 'later' =>
  done ? 'done' : ready ? 'now' : 'later';

function useDelivery(eventId: string | undefined): Delivery | undefined {
  return useQuery<Page<Delivery>>(eventId === undefined ? null : `/v1/events/${eventId}/deliveries`, {
    pollMs: 700,
  }).data?.data[0];
}

function DeliveryState({ delivery }: { delivery: Delivery | undefined }) {
  if (delivery === undefined) return null;
  const waits = delivery.status === 'pending' || delivery.status === 'retrying';
  return (
    <span className="row wrap">
      <StatusBadge status={delivery.status} />
      <span className="soft">
        {plural(delivery.attempts, 'attempt')}
        {waits && (
          <>
            {' · '}
            <WaitingFor delivery={delivery} />
          </>
        )}
      </span>
      <Link to={toDelivery(delivery)}>Details</Link>
    </span>
  );
}

function Step({
  number,
  state,
  title,
  children,
}: {
  number: number;
  state: 'done' | 'now' | 'later';
  title: string;
  children: ReactNode;
}) {
  return (
    <li className={`card step ${state}`} aria-current={state === 'now' ? 'step' : undefined}>
      <span className="mark">{state === 'done' ? <Icon name="check" /> : number}</span>
      <div className="stack" style={{ gap: 10 }}>
        <h2>
          {title} {state === 'done' && <span className="sr-only">(done)</span>}
        </h2>
        {state !== 'later' && children}
      </div>
    </li>
  );
}

function Act({ onClick, children }: { onClick: () => Promise<void>; children: ReactNode }) {
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      await onClick();
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
  };
  return (
    <div>
      <Button kind="primary" disabled={busy} onClick={() => void run()}>
        {children}
      </Button>
    </div>
  );
}
