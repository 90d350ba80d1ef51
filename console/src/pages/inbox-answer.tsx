import type { Inbox, InboxPatch } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Card } from '../ui/card.tsx';
import { showError, showToast } from '../ui/toasts.tsx';

interface AnswerOption {
  readonly name: string;
  /** What the answer does to the delivery. */
  readonly effect: string;
  readonly patch: InboxPatch;
}

const ANSWERS: readonly AnswerOption[] = [
  { name: '200 OK', effect: 'delivered', patch: { status: 200, reset: false } },
  { name: '400 Bad Request', effect: 'dead, without retries', patch: { status: 400, reset: false } },
  { name: '410 Gone', effect: 'disables the endpoint', patch: { status: 410, reset: false } },
  { name: '429 Too Many Requests', effect: 'retried', patch: { status: 429, reset: false } },
  { name: '500 Server Error', effect: 'retried', patch: { status: 500, reset: false } },
  { name: '503 Unavailable', effect: 'retried', patch: { status: 503, reset: false } },
  { name: 'Connection reset', effect: 'retried', patch: { reset: true } },
];
const DELAYS_MS = [0, 500, 2000, 10_000, 20_000];

export const updateInbox = (token: string, patch: InboxPatch): Promise<Inbox> =>
  callApi<Inbox>('PATCH', `/v1/inboxes/${token}`, patch);

/** Sets how the inbox answers requests. */
export function InboxAnswerCard({ inbox: { token, answer } }: { inbox: Inbox }) {
  const { canEditInboxes } = usePermissions();
  const [isBusy, setBusy] = useState(false);
  const update = async (patch: InboxPatch, confirmation: string): Promise<void> => {
    setBusy(true);
    try {
      await updateInbox(token, patch);
      invalidate(`/v1/inboxes/${token}`);
      showToast(confirmation);
    } catch (error) {
      showError(error);
    }
    setBusy(false);
  };
  const isCurrent = ({ status, reset }: InboxPatch): boolean =>
    reset === true ? answer.reset : !answer.reset && answer.status === status;
  return (
    <Card title="Answer">
      <fieldset
        className="card-body stack"
        style={{ border: 0, margin: 0, gap: 8 }}
        disabled={isBusy || !canEditInboxes}
      >
        <legend className="sr-only">Answer</legend>
        {ANSWERS.map(({ name, effect, patch }) => (
          <label key={name} className="check">
            <input
              type="radio"
              name="answer"
              checked={isCurrent(patch)}
              onChange={() => void update(patch, `New answer: ${name}`)}
            />
            <span>
              {name} <span className="faint">· {effect}</span>
            </span>
          </label>
        ))}
        <div className="field">
          <label htmlFor="inbox-delay">Delay before the answer</label>
          <select
            id="inbox-delay"
            className="input"
            value={answer.delay_ms}
            onChange={(event) => void update({ delay_ms: Number(event.target.value) }, 'Delay set')}
          >
            {[...new Set([...DELAYS_MS, answer.delay_ms])].map((delayMs) => (
              <option key={delayMs} value={delayMs}>
                {delayMs === 0 ? 'none' : `${delayMs / 1000} s`}
              </option>
            ))}
          </select>
        </div>
      </fieldset>
    </Card>
  );
}
