import type { RequestSender } from '../ports/stages.ts';
import type { Deliverer } from './deliverer.ts';
import type { Mailer } from './mailer.ts';
import { maskTarget } from './redacted-url.ts';

/** Sends to endpoints and chats with the deliverer, and to e-mail addresses with the mailer. */
export function createSender(
  deliverer: Pick<Deliverer, 'send'>,
  mailer: Pick<Mailer, 'send'>,
): RequestSender {
  return {
    send(request, done) {
      const kind = request.endpoint.notifier?.kind;
      if (kind === undefined) deliverer.send(request, done);
      else if (kind === 'email') mailer.send(request, done);
      else deliverer.send(request, (outcome) => done({ ...outcome, url: maskTarget(outcome.url) }));
    },
  };
}
