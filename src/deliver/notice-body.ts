/** The messages of notifiers. Like an envelope, a message depends only on the endpoint and the event. */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import {
  CONFIRMATION_SUBJECT,
  confirmationText,
  type Digest,
  mailText,
  noticeTypes,
  slackBody,
  summaryOf,
} from '../domain/notices.ts';
import { REDACTED_LINK } from './redacted-url.ts';

const digestOf = (event: EventContent): Digest => JSON.parse(event.data.toString('utf8')) as Digest;

export const mailSubjectOf = (event: EventContent): string =>
  `[Posthorn] ${event.type === noticeTypes.confirmation ? CONFIRMATION_SUBJECT : summaryOf(digestOf(event))}`;

/** `link`: where to confirm. Null hides the link, because readers of the API must not confirm the address of somebody else. */
export function noticeBody(
  { notifier }: Pick<Endpoint, 'notifier'>,
  event: EventContent,
  publicUrl: string,
  link: string | null,
): Buffer {
  if (event.type === noticeTypes.confirmation)
    return Buffer.from(confirmationText(event.tenant, publicUrl, link ?? REDACTED_LINK));
  return Buffer.from(notifier?.kind === 'slack' ? slackBody(digestOf(event)) : mailText(digestOf(event)));
}
