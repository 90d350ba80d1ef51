/**
 * Signing in to the console with OpenID Connect. The console is the only client of these routes, so they are not part of the
 * OpenAPI document (docs/operate/sign-in.md).
 */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../domain/clock.ts';
import { isProblem } from '../../domain/problem.ts';
import type { AuditAction } from '../../manage/audit-actions.ts';
import { AuditTrail } from '../../manage/audit-trail.ts';
import type { AuditFor } from '../../manage/console-sessions.ts';
import type { SecretBox } from '../../postgres/secret-box.ts';
import type { Log } from '../../telemetry/log.ts';
import { clientAddress, type IsTrustedProxy } from '../http/client-address.ts';
import { readAttempt, UsedAttempts, writeAttemptCookie } from './attempt-cookie.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { type Claims, type RoleRules, roleOfClaims } from './roles.ts';
import type { Sessions } from './sessions.ts';

export interface SignInDependencies {
  readonly provider: IdentityProvider;
  readonly sessions: Sessions;
  readonly rules: RoleRules;
  readonly secretBox: SecretBox;
  readonly isSecure: () => boolean;
}

interface Context extends SignInDependencies {
  readonly clock: Clock;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly log: Log;
  readonly publicUrl: () => string;
}

const HOME = '/console';
const HIDDEN = { schema: { hide: true } } as const;

/** Why a sign-in failed. The console explains each. */
type Failure = 'no_role' | 'expired' | 'failed';

/** Null: signing in with OpenID Connect is switched off. */
export function signInRoutes(context: Context | null): FastifyPluginAsync {
  return async (server) => {
    server.get('/auth/session', HIDDEN, async (request) => {
      const session = (await context?.sessions.findCurrent(request.headers.cookie)) ?? null;
      return {
        sign_in: context !== null,
        session: session && { name: session.name, csrf_token: session.csrfToken },
      };
    });
    if (context === null) return;
    const { provider, sessions, log } = context;
    const used = new UsedAttempts(context.clock);
    const redirectUri = () => `${context.publicUrl()}/auth/callback`;

    server.get<{ Querystring: { return_to?: unknown } }>('/auth/login', HIDDEN, async (request, reply) => {
      const { url, attempt } = await provider.begin(redirectUri());
      const returnTo = localAddress(request.query.return_to);
      return reply
        .header('set-cookie', writeAttemptCookie(context, { ...attempt, returnTo }))
        .redirect(url.href, 302);
    });

    server.get('/auth/callback', HIDDEN, async (request, reply) => {
      void reply.header('set-cookie', writeAttemptCookie(context, null));
      const attempt = readAttempt(context, request.headers.cookie);
      if (attempt === null || !used.use(attempt)) return fail(reply, 'expired');
      const { search } = new URL(request.url, 'http://localhost');
      try {
        const claims = await provider.finish(new URL(`${redirectUri()}${search}`), attempt);
        const role = roleOfClaims(claims, context.rules);
        if (role === null) {
          log.warn({ subject: claims.sub }, 'somebody without a role tried to sign in');
          return fail(reply, 'no_role');
        }
        log.info({ subject: claims.sub, ...role }, 'somebody signed in');
        const person = { subject: claims.sub, name: nameOf(claims), ...role };
        const cookie = await sessions.start(person, auditAs('session.create', request, context));
        return reply.header('set-cookie', cookie).redirect(attempt.returnTo, 302);
      } catch (error) {
        if (isProblem(error, 'unavailable')) throw error;
        log.warn({ err: error }, 'a sign-in failed');
        return fail(reply, 'failed');
      }
    });

    server.post('/auth/logout', HIDDEN, async (request, reply) => {
      const cookie = await sessions.end(request, auditAs('session.delete', request, context));
      return reply.header('set-cookie', cookie).code(204).send();
    });
  };
}

/** These routes are not under `/v1`, whose hooks would audit them. */
function auditAs(
  action: AuditAction,
  { id: requestId, socket, headers }: FastifyRequest,
  { clock, isTrustedProxy }: Context,
): AuditFor {
  // Read now: a closed connection has no address.
  const address = clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], isTrustedProxy);
  return (caller) => new AuditTrail({ caller, requestId, address }, clock, action);
}

const fail = (reply: FastifyReply, failure: Failure): FastifyReply =>
  reply.redirect(`${HOME}?sign_in_error=${failure}`, 302);

/** Only pages of the console: anything else would make the sign-in lead to other sites. */
function localAddress(given: unknown): string {
  const isLocal = typeof given === 'string' && /^\/console(\/[\w.-]+)*\/?(\?[\w.=&%:+-]*)?$/.test(given);
  return isLocal && !given.includes('..') ? given : HOME;
}

function nameOf(claims: Claims): string {
  const name = [claims.email, claims.preferred_username, claims.name, claims.sub].find(
    (value): value is string => typeof value === 'string' && value !== '',
  );
  return (name ?? '').slice(0, 200);
}
