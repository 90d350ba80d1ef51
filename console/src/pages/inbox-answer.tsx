import { useState } from 'react';
import { call } from '../api/client.ts';
import { invalidate } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Inbox, InboxAnswer } from '../api/types.ts';
import { Card } from '../ui/basics.tsx';
import { toast, toastError } from '../ui/toasts.tsx';

const CHOICES: readonly (readonly [string, string, Partial<InboxAnswer>])[] = [
  ['200 OK', 'delivered', { status: 200, reset: false }],
  ['400 Bad Request', 'rejected: dead at once', { status: 400, reset: false }],
  ['410 Gone', 'disables the endpoint', { status: 410, reset: false }],
  ['429 Too Many Requests', 'retried', { status: 429, reset: false }],
  ['500 Server Error', 'retried', { status: 500, reset: false }],
  ['503 Unavailable', 'retried', { status: 503, reset: false }],
  ['Connection reset', 'retried', { reset: true }],
];
const DELAYS = [0, 500, 2000, 10_000, 20_000];

export const setAnswer = (inbox: Pick<Inbox, 'token'>, answer: Partial<InboxAnswer>): Promise<Inbox> =>
  call<Inbox>('PATCH', `/v1/inboxes/${inbox.token}`, answer);

export function AnswerControls({ inbox }: { inbox: Inbox }) {
  const may = useMay();
  const [busy, setBusy] = useState(false);
  const { answer } = inbox;
  const set = async (changes: Partial<InboxAnswer>, done: string): Promise<void> => {
    setBusy(true);
    try {
      await setAnswer(inbox, changes);
      invalidate(`/v1/inboxes/${inbox.token}`);
      toast(done);
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
  };
  const isNow = (choice: Partial<InboxAnswer>): boolean =>
    choice.reset === true ? answer.reset : !answer.reset && answer.status === choice.status;
  return (
    <Card title="How it answers">
      <fieldset
        className="card-body stack"
        style={{ border: 0, margin: 0, gap: 8 }}
        disabled={busy || !may.write}
      >
        <legend className="sr-only">Answer</legend>
        {CHOICES.map(([name, effect, choice]) => (
          <label key={name} className="check">
            <input
              type="radio"
              name="answer"
              checked={isNow(choice)}
              onChange={() => void set(choice, `It answers ${name} from now on`)}
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
            onChange={(event) => void set({ delay_ms: Number(event.target.value) }, 'Delay set')}
          >
            {[...new Set([...DELAYS, answer.delay_ms])].map((delay) => (
              <option key={delay} value={delay}>
                {delay === 0 ? 'none' : `${delay / 1000} s`}
              </option>
            ))}
          </select>
        </div>
      </fieldset>
    </Card>
  );
}
