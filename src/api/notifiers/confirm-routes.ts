/**
 * The page behind the link in a confirmation. Opening it changes nothing, because mail programs open links to check them;
 * the button does.
 */
import type { FastifyPluginAsync, FastifyReply } from 'fastify';
import { CONFIRM_PATH } from '../../manage/confirmations.ts';
import type { Notifiers } from '../../manage/notifiers.ts';

const HIDDEN = { schema: { hide: true } } as const;
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
};
const MAX_TOKEN = 1000;

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>${title} – Posthorn</title>
<h1>${title}</h1>
${body}
</html>
`;

const ASK = page(
  'Do you want notices at this address?',
  '<p>If you confirm, you get e-mail about webhook endpoints that fail and deliveries that are no longer retried.</p>\n<form method="post"><button>Confirm</button></form>',
);
const CONFIRMED = page('Confirmed', '<p>You will get notices at this address.</p>');
const INVALID = page(
  'This link does not work',
  '<p>It has expired, was used already, or is incomplete. Ask for a new one where you entered your address.</p>',
);

type WithToken = { Querystring: { token?: unknown } };

const send = (reply: FastifyReply, status: number, html: string): FastifyReply =>
  reply.code(status).headers(HEADERS).send(html);

const readToken = (token: unknown): string =>
  typeof token === 'string' && token.length <= MAX_TOKEN ? token : '';

export function confirmRoutes(notifiers: Notifiers): FastifyPluginAsync {
  return async (server) => {
    // The form has no fields: the token is in the address.
    server.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: MAX_TOKEN },
      (_request, _body, done) => done(null, undefined),
    );
    server.get<WithToken>(CONFIRM_PATH, HIDDEN, async ({ query }, reply) =>
      (await notifiers.isConfirmable(readToken(query.token)))
        ? send(reply, 200, ASK)
        : send(reply, 410, INVALID),
    );
    server.post<WithToken>(CONFIRM_PATH, HIDDEN, async ({ query }, reply) =>
      (await notifiers.confirm(readToken(query.token)))
        ? send(reply, 200, CONFIRMED)
        : send(reply, 410, INVALID),
    );
  };
}
