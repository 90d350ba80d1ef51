/** One delivery: its state, the actions on it, and its attempts. */
import type { Attempt, Delivery, Endpoint, Page } from '@posthorn/client';
import { useEffect, useRef, useState } from 'react';
import { callApi } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Link, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { DeliveryStatusBadge, isWaitingStatus, WaitReason } from '../ui/delivery-status.tsx';
import { type EndpointName, nameEndpoint } from '../ui/endpoint-name.ts';
import { describeDeath, describeDiscard, describeError, stripTitle } from '../ui/failure-text.ts';
import { plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { AttemptRow } from './attempt-row.tsx';

interface DeliveryCardProps {
  delivery: Delivery;
  /** Whether the attempts are visible at first. */
  isInitiallyOpen: boolean;
  onChange: () => Promise<void>;
}

export function DeliveryCard({ delivery, isInitiallyOpen, onChange }: DeliveryCardProps) {
  const [isOpen, setOpen] = useState(isInitiallyOpen);
  const card = useRef<HTMLElement>(null);
  const isLinked = useLocation().query.get('delivery') === delivery.id;
  useEffect(() => {
    if (isLinked) card.current?.scrollIntoView({ block: 'nearest' });
  }, [isLinked]);
  const { data: endpoint, error } = useQuery<Endpoint>(`/v1/endpoints/${delivery.endpoint_id}`);
  const receiver = nameReceiver(delivery, endpoint, error?.status === 404);
  const attempts = useAttempts(delivery, isOpen);
  const lastError = attempts?.at(-1)?.error ?? null;
  return (
    <section className="card" ref={card} aria-label={`Delivery to ${receiver.name}`}>
      <DeliveryHead delivery={delivery} receiver={receiver} onChange={onChange} />
      {delivery.status !== 'delivered' && (lastError !== null || delivery.reason !== null) && (
        <div className="delivery-note">
          <Notice tone={chooseTone(delivery)} title={buildNoticeTitle(delivery, lastError)}>
            {lastError !== null && stripTitle(describeError(lastError.class), lastError.hint)}
            {delivery.debounced_by !== null && (
              <Link to={`/deliveries/${delivery.debounced_by}`}>Show the delivery that was sent</Link>
            )}
          </Notice>
        </div>
      )}
      {isOpen ? (
        <div className="attempts">
          {attempts === undefined && (
            <div className="attempt attempt-row">
              <Skeleton width={14} />
            </div>
          )}
          {attempts?.toReversed().map((attempt, index) => (
            <AttemptRow
              key={`${attempt.number}-${attempt.started_at}`}
              attempt={attempt}
              longestMs={Math.max(...attempts.map(({ duration_ms }) => duration_ms), 1)}
              acceptedAt={delivery.created_at}
              isInitiallyOpen={index === 0 && isLinked}
            />
          ))}
        </div>
      ) : (
        <div className="card-foot" style={{ padding: '4px 8px' }}>
          <Button kind="small quiet" icon="chevron" onClick={() => setOpen(true)}>
            Show attempts
          </Button>
        </div>
      )}
    </section>
  );
}

/** The attempts of a delivery, oldest first. Fetched again when the delivery changes. */
function useAttempts({ id, status, attempts: count }: Delivery, isOpen: boolean): Attempt[] | undefined {
  const { data, refresh } = useQuery<Page<Attempt>>(isOpen ? `/v1/deliveries/${id}/attempts` : null, {
    pollMs: isWaitingStatus(status) ? 1_000 : 0,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the delivery changes
  useEffect(() => void refresh(), [count, status]);
  return data?.data;
}

/** A debounced delivery did not fail. */
const chooseTone = ({ status, reason }: Delivery): 'bad' | 'warn' | 'info' =>
  status === 'dead' ? 'bad' : reason === 'debounced' ? 'info' : 'warn';

function buildNoticeTitle({ status, reason }: Delivery, lastError: Attempt['error']): string {
  const title =
    status === 'discarded'
      ? [lastError && describeError(lastError.class), describeDiscard(reason)].filter(Boolean).join(' · ')
      : describeDeath(lastError?.class ?? null, isWaitingStatus(status) ? null : reason);
  return title.charAt(0).toUpperCase() + title.slice(1);
}

interface Receiver extends EndpointName {
  /** Whether there is a page to link to. */
  readonly hasPage: boolean;
}

const NOTICE_TYPES = ['posthorn.notice', 'posthorn.notifier.confirmation'];

/** Who gets the delivery. The API shows neither notifiers nor deleted endpoints as endpoints. */
function nameReceiver(
  { endpoint_id: id, event_type: type }: Delivery,
  endpoint: Endpoint | undefined,
  isMissing: boolean,
): Receiver {
  if (endpoint !== undefined) return { ...nameEndpoint(endpoint), hasPage: true };
  if (!isMissing) return { name: id, detail: null, hasPage: true };
  const name = NOTICE_TYPES.includes(type) ? 'Notifier' : 'Deleted endpoint';
  return { name, detail: id, hasPage: false };
}

/** A replay starts the schedule again, so the attempts of a replayed delivery can be more than the schedule has. */
const describeAttempts = ({ attempts, max_attempts: max, replays }: Delivery): string =>
  max === null || replays > 0 ? plural(attempts, 'attempt') : `${attempts} of ${plural(max, 'attempt')}`;

interface DeliveryHeadProps {
  delivery: Delivery;
  receiver: Receiver;
  onChange: () => Promise<void>;
}

function DeliveryHead({ delivery, receiver: { name, detail, hasPage }, onChange }: DeliveryHeadProps) {
  return (
    <div className="delivery-head">
      <DeliveryStatusBadge status={delivery.status} />
      <div className="grow" style={{ flexBasis: 180 }}>
        <h2 className="truncate">
          {hasPage ? <Link to={`/endpoints/${delivery.endpoint_id}`}>{name}</Link> : name}
        </h2>
        <div className="small faint row wrap" style={{ gap: 10 }}>
          {detail !== null && <span className="truncate">{detail}</span>}
          <CopyButton text={delivery.id} />
          <span>{describeAttempts(delivery)}</span>
          {delivery.replays > 0 && <span>replayed {delivery.replays}×</span>}
          {delivery.batch_id !== null && <Link to={`/batches/${delivery.batch_id}`}>sent in a batch</Link>}
          {isWaitingStatus(delivery.status) && (
            <span className="warn">
              <WaitReason delivery={delivery} />
            </span>
          )}
        </div>
      </div>
      <DeliveryActions delivery={delivery} onChange={onChange} />
    </div>
  );
}

/** By default the API can restore a discarded delivery for ten seconds. The Undo button disappears a little earlier. */
const UNDO_MS = 9_500;

type DeliveryAction = 'replay' | 'discard' | 'restore';

function DeliveryActions({
  delivery: { id, status },
  onChange,
}: Pick<DeliveryHeadProps, 'delivery' | 'onChange'>) {
  const { canReplay } = usePermissions();
  if (!canReplay) return null;
  const run = async (action: DeliveryAction): Promise<void> => {
    try {
      await callApi('POST', `/v1/deliveries/${id}/${action}`, action === 'discard' ? {} : undefined);
      if (action === 'discard')
        showToast('Discarded', { onUndo: () => void run('restore'), durationMs: UNDO_MS });
      else showToast(action === 'restore' ? 'Restored as a dead letter' : 'Replaying');
    } catch (error) {
      showError(error);
    }
    await onChange();
  };
  return (
    <div className="row">
      {status === 'dead' && (
        <Button kind="small" icon="trash" onClick={() => void run('discard')}>
          Discard
        </Button>
      )}
      <Button kind="small" icon="replay" onClick={() => void run('replay')}>
        {isWaitingStatus(status) ? 'Send now' : status === 'delivered' ? 'Send again' : 'Replay'}
      </Button>
    </div>
  );
}
