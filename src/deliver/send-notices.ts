import type { SendRequest } from '../ports/stages.ts';
import type { Deliverer } from './deliverer.ts';
import type { Mailer } from './mailer.ts';
import { maskTarget } from './redacted-url.ts';

/** Returns a function that sends to endpoints and chats with the deliverer, and to e-mail addresses with the mailer. */
export function createSendRequest(
  deliverer: Pick<Deliverer, 'send'>,
  mailer: Pick<Mailer, 'send'>,
): SendRequest {
  return (request, done) => {
    const kind = request.endpoint.notifier?.kind;
    if (kind === undefined) deliverer.send(request, done);
    else if (kind === 'email') mailer.send(request, done);
    else deliverer.send(request, (outcome) => done({ ...outcome, url: maskTarget(outcome.url) }));
  };
}
