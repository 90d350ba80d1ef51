/**
 * SEC-4: every change made through the API leaves an audit entry. A new route cannot forget it:
 *
 *   - every route that can change something gets these hooks, with an action named after its address;
 *   - the control plane records the change in the transaction that makes it: both commit or neither;
 *   - if nothing was recorded, a hook writes a plain entry after the change and before the answer is sent. If that
 *     fails, the answer is an error, and the entry is logged.
 */
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Clock } from '../../domain/clock.ts';
import { AuditTrail, type Change } from '../../manage/audit-trail.ts';
import type { Pool } from '../../postgres/database.ts';
import type { Log } from '../../telemetry/log.ts';
import { clientAddress, type IsTrustedProxy } from './client-address.ts';
import { listOf } from './hooks.ts';

declare module 'fastify' {
  interface FastifyRequest {
    audit: AuditTrail;
  }
  interface FastifyContextConfig {
    /** The action to record if the one named after the address does not fit. On a GET: record it although it reads. */
    audit?: string;
    /** The route accepts events, which are their own record. */
    publishes?: boolean;
  }
}

export interface AuditDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly isTrustedProxy: IsTrustedProxy;
}

/** The action that a route records by default. Null: the route changes nothing. */
export function auditedAction(route: Pick<RouteOptions, 'method' | 'url' | 'config'>): string | null {
  const { audit, reads, publishes } = route.config ?? {};
  if (audit !== undefined) return audit;
  const method = String(route.method);
  if (method === 'GET' || method === 'HEAD' || reads === true || publishes === true) return null;
  return actionOf(method, route.url);
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'update', PUT: 'update' };

/** `POST /v1/endpoints/:id/rotate-secret` → `endpoint.rotate_secret`, `DELETE /v1/keys/:id` → `key.delete` */
function actionOf(method: string, url: string): string {
  const [objects, ...rest] = url
    .split('/')
    .filter((part) => part !== '' && part !== 'v1' && !part.startsWith(':'))
    .map((part) => part.replaceAll('-', '_'));
  const object = objects!.replace(/ies$/, 'y').replace(/s$/, '');
  const verb = method === 'DELETE' ? 'delete' : VERBS[method];
  if (rest.length === 0) return `${object}.${verb}`;
  return `${object}.${rest.join('_')}${method === 'POST' ? '' : `_${verb}`}`;
}

/** Adds the audit hooks to a route that changes something. Call it from an `onRoute` hook. */
export function auditRoute(dependencies: AuditDependencies, route: RouteOptions): void {
  const action = auditedAction(route);
  if (action === null) return;
  const { clock, isTrustedProxy } = dependencies;
  route.preHandler = [
    async (request: FastifyRequest): Promise<void> => {
      const { caller, id: requestId, socket, headers } = request;
      // Read now: a closed connection has no address.
      const address = clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], isTrustedProxy);
      request.audit = new AuditTrail({ caller, requestId, address }, clock, action);
    },
    ...listOf(route.preHandler),
  ];
  route.onSend = [
    ...listOf(route.onSend),
    async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { audit } = request;
      // There is no trail if the request was refused before its handler ran.
      if (audit === undefined || audit.isComplete || reply.statusCode >= 400) return;
      await recordAfterwards(dependencies, request);
    },
  ];
}

async function recordAfterwards({ pool, log }: AuditDependencies, request: FastifyRequest): Promise<void> {
  const { id = null } = request.params as { id?: string };
  const change: Change = { tenant: request.caller.tenant, objectId: id };
  try {
    await request.audit.record(pool, change);
  } catch (error) {
    log.error(
      { err: error, audit: request.audit.entryOf(change) },
      'the audit entry of a change could not be written',
    );
    throw error;
  }
}
