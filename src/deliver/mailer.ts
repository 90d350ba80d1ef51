/**
 * Sends the messages of notifiers that have an e-mail address. It takes the place of the deliverer for these: one attempt in,
 * one outcome out. So retries, dead letters, the breaker and the attempt log are those of all deliveries.
 *
 *   not confirmed, no confirmation   mail_rejected: nothing is sent
 *   confirmation over its limit      mail_rejected: nothing is sent
 *   too many messages wait           mail_failed: nothing is sent
 *   timeout while it waits           timeout: nothing is sent
 *   250 from the mail server         delivered
 *   5xx from the mail server         mail_rejected
 *   anything else                    mail_failed: retried
 *
 * The mail server is the operator's setting, so the egress guard does not apply to it. A message that is sent again, because
 * its outcome was unknown, has the same Message-ID.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { publicId } from '../domain/ids.ts';
import { isNoticeType, noticeTypes } from '../domain/notices.ts';
import type { AttemptOutcome, ErrorClass } from '../domain/outcome.ts';
import type { AttemptRequest, RequestSender } from '../ports/stages.ts';
import { codeOf, errorMessage } from './classify-error.ts';
import { MailQueue, type QueuedMail } from './mail-queue.ts';
import { mailSubjectOf, noticeBody } from './notice-body.ts';
import { addressOf, maskAddress, maskTarget } from './redacted-url.ts';

/** One message for one recipient. */
export interface Mail {
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface MailTransport {
  /** Resolves when the server has taken the message. Rejects otherwise, with `responseCode` if the server answered. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** Decides whether a confirmation may be sent. The limits protect people from mail that they did not ask for. */
export interface ConfirmationGate {
  /** Returns false if too many were sent to this address, or by this tenant. */
  claim(endpoint: Endpoint, event: EventContent): Promise<boolean>;
  /** Call this if the message was not sent. It then does not count. */
  release(endpoint: Endpoint, event: EventContent): Promise<void>;
  /** Returns the link under which the owner of the address confirms it. */
  linkTo(endpoint: Endpoint, event: EventContent): string;
}

export interface MailerOptions {
  /** Null: there is no mail server. */
  readonly transport: MailTransport | null;
  readonly from: string;
  readonly confirmations: ConfirmationGate;
  readonly clock: Clock;
  readonly publicUrl: string;
}

class NotSentError extends Error {
  readonly errorClass: ErrorClass;

  constructor(errorClass: ErrorClass, message: string) {
    super(message);
    this.errorClass = errorClass;
  }
}

/** The lease has expired: another worker sends the message. */
class WithdrawnError extends Error {}
/** This process stops before the server has answered. */
class InterruptedError extends WithdrawnError {}

/** How many messages a process sends at once. */
export const MAIL_CONNECTIONS = 3;
const QUEUE_LIMITS = { connections: MAIL_CONNECTIONS, waitingPerTenant: 50, waiting: 1_000 };

export class Mailer implements RequestSender {
  readonly #options: MailerOptions;
  readonly #queue = new MailQueue(QUEUE_LIMITS);
  readonly #closed = new AbortController();

  constructor(options: MailerOptions) {
    this.#options = options;
  }

  /** Calls `done` exactly once, after it has returned. Never throws. */
  send(request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void {
    void this.#run(request).then(done);
  }

  async #run(request: AttemptRequest): Promise<AttemptOutcome> {
    const { clock } = this.#options;
    const startedAt = clock.now();
    const started = clock.monotonic();
    let requestHeaders = {};
    let result: Partial<AttemptOutcome>;
    try {
      const mail = this.#compose(request, startedAt);
      await this.#attempt(request, mail, () => {
        requestHeaders = headersOf(mail);
      });
      result = { statusCode: MAIL_TAKEN };
    } catch (error) {
      result = failureOf(error);
    }
    return {
      startedAt,
      durationMs: Math.round((clock.monotonic() - started) * 10) / 10,
      timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
      statusCode: null,
      error: null,
      url: maskTarget(request.endpoint.url),
      requestHeaders,
      responseHeaders: null,
      responseBody: null,
      responseTruncated: false,
      retryAfterMs: null,
      ...result,
    };
  }

  /** Ends attempts in flight: the next owner sends their messages again. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#options.transport?.close();
  }

  #compose({ endpoint, event, deliveryId, number }: AttemptRequest, startedAt: number): Mail {
    const { from, publicUrl } = this.#options;
    if (!isNoticeType(event.type)) throw new NotSentError('mail_rejected', 'A notifier sends notices only.');
    return {
      from,
      to: addressOf(endpoint.url),
      subject: mailSubjectOf(event),
      text: '',
      messageId: `<${publicId('evt', event.id)}@${URL.parse(publicUrl)?.hostname ?? 'posthorn'}>`,
      headers: {
        'auto-submitted': 'auto-generated',
        'webhook-id': publicId('evt', event.id),
        'webhook-timestamp': String(Math.floor(startedAt / 1000)),
        'posthorn-delivery': publicId('dlv', deliveryId),
        'posthorn-attempt': String(number),
      },
    };
  }

  async #attempt(
    { endpoint, event, maySend }: AttemptRequest,
    mail: Mail,
    onSending: () => void,
  ): Promise<void> {
    const { transport, confirmations, publicUrl, clock } = this.#options;
    if (transport === null)
      throw new NotSentError('mail_failed', 'There is no mail server: set POSTHORN_SMTP_URL.');
    const isConfirmation = event.type === noticeTypes.confirmation;
    if (!isConfirmation && endpoint.notifier?.confirmation !== undefined)
      throw new NotSentError('mail_rejected', 'The owner of the address has not confirmed it.');
    if (isConfirmation && !(await confirmations.claim(endpoint, event)))
      throw new NotSentError('mail_rejected', 'Too many confirmations were sent. Try again tomorrow.');
    const link = isConfirmation ? confirmations.linkTo(endpoint, event) : null;
    const text = noticeBody(endpoint, event, publicUrl, link).toString('utf8');
    let isSending = false;
    const send = async (): Promise<void> => {
      if (!maySend()) throw new WithdrawnError();
      isSending = true;
      onSending();
      await transport.send({ ...mail, text });
    };
    try {
      const queued = this.#queue.add(endpoint.operator ? null : endpoint.tenant, send);
      if (queued === null)
        throw new NotSentError('mail_failed', 'Too many messages wait for the mail server.');
      await this.#waitWithin(endpoint.timeoutMs, queued, clock);
    } catch (error) {
      if (isConfirmation && !(isSending && isOutcomeUnknown(error)))
        await confirmations.release(endpoint, event);
      throw error;
    }
  }

  /**
   * A message that waits when the time is over is never sent by this attempt. One that the server takes later is sent again,
   * with the same Message-ID.
   */
  #waitWithin(ms: number, { sent, withdraw }: QueuedMail, clock: Clock): Promise<void> {
    const { signal } = this.#closed;
    return new Promise<void>((resolve, reject) => {
      const end = (error: Error): void => {
        withdraw();
        cancel();
        signal.removeEventListener('abort', interrupt);
        reject(error);
      };
      const interrupt = (): void => end(new InterruptedError());
      const cancel = clock.after(ms, () => end(new NotSentError('timeout', errorMessage('timeout'))));
      signal.addEventListener('abort', interrupt);
      if (signal.aborted) interrupt();
      sent.then(resolve, reject).finally(() => {
        cancel();
        signal.removeEventListener('abort', interrupt);
      });
    });
  }
}

/** True if the server may have taken a message that was being sent. */
const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof InterruptedError || (error instanceof NotSentError && error.errorClass === 'timeout');

/** The code with which a mail server accepts a message. */
const MAIL_TAKEN = 250;

/** The headers as an attempt records them. Attempts outlive the notifier, so the address is masked. */
const headersOf = ({ from, to, subject, messageId, headers }: Mail): Record<string, string> => ({
  'content-type': 'text/plain; charset=utf-8',
  from,
  to: maskAddress(to),
  subject,
  'message-id': messageId,
  ...headers,
});

function failureOf(error: unknown): Partial<AttemptOutcome> {
  if (error instanceof WithdrawnError)
    return { error: { class: 'internal', message: errorMessage('internal', 'withdrawn') }, withdrawn: true };
  if (error instanceof NotSentError) return { error: { class: error.errorClass, message: error.message } };
  const { responseCode } = error as { responseCode?: unknown };
  // Record only the code: the text of the answer may name machines of the operator.
  const code = typeof responseCode === 'number' ? responseCode : null;
  // 4xx: the server may accept it later. 5xx: it never will.
  const errorClass = code !== null && code >= 500 ? 'mail_rejected' : 'mail_failed';
  return { error: { class: errorClass, message: errorMessage(errorClass, code ?? codeOf(error)) } };
}
