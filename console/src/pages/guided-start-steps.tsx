import type { Delivery } from '@posthorn/client';
import { type ReactNode, useState } from 'react';
import { callApi } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { DeliveryStatusBadge, isWaitingStatus, WaitReason } from '../ui/delivery-status.tsx';
import { CircuitBadge } from '../ui/endpoint-state.tsx';
import { plural } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { showError } from '../ui/toasts.tsx';
import { linkToDelivery } from './delivery-list.tsx';
import type { Tour } from './guided-start.tsx';
import { updateInbox } from './inbox-answer.tsx';
import { createInboxEndpoint } from './inbox-endpoint.ts';
import { SignatureBadge } from './inbox-request-row.tsx';
import { createInbox } from './inboxes.tsx';

interface TourStepProps {
  tour: Tour;
}

export function CreateStep({ tour: { progress, inbox, addProgress } }: TourStepProps) {
  const { selectedTenant } = useSession();
  const { token, endpointId } = progress;
  const create = async (): Promise<void> => {
    const created = await createInbox(selectedTenant);
    const { id } = await createInboxEndpoint(created, {
      description: 'Guided start',
      // The tour addresses its events to the endpoint. The endpoint gets no other event of the tenant.
      events: ['guided.start'],
    });
    addProgress({ token: created.token, tenant: created.tenant, endpointId: id });
  };
  return (
    <Step
      number={1}
      state={endpointId === undefined ? 'now' : 'done'}
      title="Create an endpoint that sends to this console"
    >
      {endpointId === undefined ? (
        <>
          <p className="soft">
            An endpoint is a URL and the events it subscribes to. This one sends to an inbox inside Posthorn.
          </p>
          <ActionButton onClick={create}>Create inbox endpoint</ActionButton>
        </>
      ) : (
        <div className="row wrap small soft">
          <Link to={`/endpoints/${endpointId}`}>Endpoint</Link>
          <Link to={`/inbox/${token}`}>Inbox</Link>
          {inbox !== undefined && <CopyButton text={inbox.url} label="the URL" />}
        </div>
      )}
    </Step>
  );
}

export function DeliverStep({
  tour: { progress, requests, firstDelivery, addProgress, publish },
}: TourStepProps) {
  const { endpointId, firstEvent } = progress;
  const request = requests.find(({ headers }) => headers['webhook-id'] === firstEvent);
  return (
    <Step
      number={2}
      state={getStepState(endpointId !== undefined, firstDelivery?.status === 'delivered')}
      title="Publish an event and see it arrive"
    >
      {firstEvent === undefined ? (
        <>
          <p className="soft">Your application does this with one POST to /v1/events.</p>
          <ActionButton onClick={async () => addProgress({ firstEvent: (await publish(1)).id })}>
            Publish test event
          </ActionButton>
        </>
      ) : (
        <div className="watch" aria-live="polite">
          {request === undefined ? (
            <span className="soft">Sending…</span>
          ) : (
            <span className="row wrap">
              Request #{request.number} arrived <SignatureBadge request={request} />
            </span>
          )}
          <DeliveryState delivery={firstDelivery} />
        </div>
      )}
    </Step>
  );
}

export function FailStep({ tour }: TourStepProps) {
  const { progress, firstDelivery, secondDelivery, addProgress, publish } = tour;
  const { token, secondEvent, replayed } = progress;
  return (
    <Step
      number={3}
      state={getStepState(
        firstDelivery?.status === 'delivered',
        secondDelivery?.status === 'dead' || replayed === true,
      )}
      title="Let the receiver fail, and watch the retries"
    >
      {secondEvent === undefined ? (
        <>
          <p className="soft">
            The inbox will answer 503. Posthorn tries this event four times within half a minute; the default
            schedule takes 34 hours.
          </p>
          <ActionButton
            onClick={async () => {
              await updateInbox(token!, { status: 503 });
              addProgress({ secondEvent: (await publish(2)).id });
            }}
          >
            Answer 503 and publish
          </ActionButton>
        </>
      ) : (
        <FailureState tour={tour} />
      )}
    </Step>
  );
}

function FailureState({ tour: { progress, requests, endpoint, secondDelivery } }: TourStepProps) {
  const requestCount = requests.filter(
    ({ headers }) => headers['webhook-id'] === progress.secondEvent,
  ).length;
  return (
    <div className="watch" aria-live="polite">
      <span>{plural(requestCount, 'request')} arrived, all answered with 503</span>
      <DeliveryState delivery={secondDelivery} />
      {endpoint !== undefined && endpoint.health.circuit !== 'closed' && (
        <span className="row wrap">
          Circuit <CircuitBadge circuit={endpoint.health.circuit} />
          <span className="soft">
            Three failures in a row: Posthorn sends nothing until a probe succeeds.
          </span>
        </span>
      )}
      {secondDelivery?.status === 'dead' && (
        <span className="soft">
          Posthorn gave up after {secondDelivery.attempts} attempts. The delivery is now a{' '}
          <Link to="/dead-letters">dead letter</Link>: nothing is lost.
        </span>
      )}
    </div>
  );
}

export function ReplayStep({ tour: { progress, secondDelivery, addProgress } }: TourStepProps) {
  const { token, replayed = false } = progress;
  return (
    <Step
      number={4}
      state={getStepState(
        secondDelivery?.status === 'dead' || replayed,
        replayed && secondDelivery?.status === 'delivered',
      )}
      title="Repair the receiver, and replay"
    >
      {replayed ? (
        <div className="watch" aria-live="polite">
          <DeliveryState delivery={secondDelivery} />
        </div>
      ) : (
        <>
          <p className="soft">
            The inbox will answer 200 again. A replay sends the same event again, with the same id.
          </p>
          <ActionButton
            onClick={async () => {
              await updateInbox(token!, { status: 200 });
              await callApi('POST', `/v1/deliveries/${secondDelivery!.id}/replay`);
              addProgress({ replayed: true });
            }}
          >
            Answer 200 and replay
          </ActionButton>
        </>
      )}
    </Step>
  );
}

function DeliveryState({ delivery }: { delivery: Delivery | undefined }) {
  if (delivery === undefined) return null;
  return (
    <span className="row wrap">
      <DeliveryStatusBadge status={delivery.status} />
      <span className="soft">
        {plural(delivery.attempts, 'attempt')}
        {isWaitingStatus(delivery.status) && (
          <>
            {' · '}
            <WaitReason delivery={delivery} />
          </>
        )}
      </span>
      <Link to={linkToDelivery(delivery)}>Details</Link>
    </span>
  );
}

type StepState = 'done' | 'now' | 'later';

const getStepState = (isReady: boolean, isDone: boolean): StepState =>
  isDone ? 'done' : isReady ? 'now' : 'later';

interface StepProps {
  number: number;
  state: StepState;
  title: string;
  children: ReactNode;
}

function Step({ number, state, title, children }: StepProps) {
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

/** A button that is disabled while its action runs, and shows its error. */
export function ActionButton({ onClick, children }: { onClick: () => Promise<void>; children: ReactNode }) {
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      await onClick();
    } catch (error) {
      showError(error);
    }
    setBusy(false);
  };
  return (
    <div>
      <Button kind="primary" disabled={isBusy} onClick={() => void run()}>
        {children}
      </Button>
    </div>
  );
}
