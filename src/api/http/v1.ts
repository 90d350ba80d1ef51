/** What all routes under `/v1` have in common: they need a key, and what they change is recorded. */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { Problem } from '../../domain/problem.ts';
import type { Caller } from '../../manage/caller.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { auditRoute } from './audit-routes.ts';
import { listOf } from './hooks.ts';
import { makeIdempotent } from './idempotent-requests.ts';
import { checkScopes, type NeededScopes, scopesNeededBy } from './route-scopes.ts';
import { compileSchema } from './validation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** The handler reads the bytes of the body itself. */
    rawBody?: boolean;
    /** True: changes nothing although it is not a GET. False: shows what a read-only key must not see. */
    reads?: boolean;
    /** Only with an admin key. */
    admin?: boolean;
    /** Set for every route from `route-scopes.ts`. */
    needs?: NeededScopes;
  }
}

/** The largest body of a route that does not set its own limit: events may be larger. Checking a body of settings blocks the process. */
export const SMALL_BODY_BYTES = 256 * 1024;
/** An endpoint may have 50 headers of 4 KiB, 500 patterns, a filter, metadata and a certificate. */
export const ENDPOINT_BODY_BYTES = 512 * 1024;
/** A schema and an example, as a file that somebody formatted. */
export const CATALOGUE_BODY_BYTES = 1024 * 1024;

export function prepareV1(
  v1: FastifyInstance,
  {
    pool,
    clock,
    log,
    access,
    idempotency,
  }: Pick<ApiDependencies, 'pool' | 'clock' | 'log' | 'access' | 'idempotency'>,
): void {
  const { authenticator, isTrustedProxy } = access;
  v1.addHook('onRoute', (route) => {
    route.bodyLimit ??= SMALL_BODY_BYTES;
    route.config = { ...route.config, needsKey: true, needs: scopesNeededBy(route.schema?.operationId) };
    refuseUnexpectedBody(route);
    auditRoute({ pool, clock, log, isTrustedProxy }, route);
    makeIdempotent({ pool, clock, log, idempotency }, route);
  });
  v1.addHook('onRequest', (request, _reply, done) => {
    const admit = (caller: Caller): void => {
      request.caller = caller;
      authorize(request);
    };
    try {
      const caller = authenticator.authenticate(request);
      if (caller instanceof Promise) return void caller.then(admit).then(() => done(), done);
      admit(caller);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
}

function authorize(request: FastifyRequest): void {
  const { caller, method } = request;
  const { admin, reads, needs } = request.routeOptions.config;
  if (caller.scope === 'read' && !(reads ?? (method === 'GET' || method === 'HEAD'))) {
    throw new Problem(
      'forbidden',
      reads === false ? 'A read key may not see secrets.' : 'A read key may not change anything.',
    );
  }
  if (admin === true && caller.scope !== 'admin') throw new Problem('forbidden', 'This needs an admin key.');
  checkScopes(caller, needs ?? 'unnarrowed');
}

const checkEmpty = compileSchema(Type.Object({}, { additionalProperties: false }), 'body');

/** Refuses a body that the route does not use: its sender expects it to have an effect. */
function refuseUnexpectedBody(route: RouteOptions): void {
  if (route.schema?.body !== undefined || route.config?.rawBody === true || route.method === 'GET') return;
  route.preValidation = [
    ...listOf(route.preValidation),
    (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) => {
      const checked = checkEmpty(request.body);
      done('error' in checked ? checked.error : undefined);
    },
  ];
}
