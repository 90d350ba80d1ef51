/**
 * SEC-4: every change made through the API leaves an entry. Whoever writes a route cannot forget it:
 *
 *   - each route that can change something gets this hook by itself, with an action named after its address;
 *   - a handler that says more (`request.audit.record`) does so in the transaction of its change: both or none;
 *   - for one that says nothing, the hook writes a plain entry after the change, before the answer leaves. If that
 *     fails, the answer is an error and the entry is in the log instead.
 */
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { ApiContext } from '../api/dependencies.ts';
import { nameOf } from '../api/http/authenticator.ts';
import { clientAddress } from '../api/http/client-address.ts';
import { listOf } from '../api/http/hooks.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { Queryable } from '../postgres/database.ts';
import { type AuditEntry, type FieldChange, insertAuditEntry } from '../postgres/queries/audit-log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    audit: AuditTrail;
  }
  interface FastifyContextConfig {
    /** The action to record, where the address gives no good name; on a GET: record it although it only reads. */
    audit?: string;
    /** Takes events in: they are their own record. */
    publishes?: boolean;
  }
}

export interface Change {
  readonly tenant: string | null;
  readonly objectId: string | null;
  /** Where the route's own name for them does not fit. */
  readonly action?: string;
  readonly objectType?: string;
  readonly changes?: readonly FieldChange[];
}

/** What one request has changed. */
export class AuditTrail {
  readonly #request: FastifyRequest;
  readonly #clock: Clock;
  readonly #address: string;
  readonly #action: string;
  /** Nothing is left to be recorded. */
  complete = false;
  /** The transaction that makes the change got as far as its entry: it may have been committed, whatever came after. */
  mayHaveChanged = false;

  constructor(request: FastifyRequest, context: ApiContext, action: string) {
    this.#request = request;
    this.#clock = context.clock;
    // At once: a connection that has been closed has none any more.
    const { socket, headers } = request;
    this.#address = clientAddress(
      socket.remoteAddress ?? '',
      headers['x-forwarded-for'],
      context.isTrustedProxy,
    );
    this.#action = action;
  }

  /** Pass the client of the transaction that makes the change. */
  async record(client: Queryable, change: Change): Promise<void> {
    this.mayHaveChanged = true;
    await insertAuditEntry(client, this.entry(change));
    this.complete = true;
  }

  /** It was as it should be already, or only a trial. */
  nothingChanged(): void {
    this.complete = true;
  }

  entry(change: Change): AuditEntry {
    const { caller, id } = this.#request;
    const action = change.action ?? this.#action;
    return {
      id: newId(this.#clock.now()),
      tenant: change.tenant,
      actor: nameOf(caller),
      actor_name: caller.prefix,
      scope: caller.scope,
      action,
      object_type: change.objectType ?? action.split('.')[0]!,
      object_id: change.objectId,
      request_id: id,
      address: this.#address,
      changes: change.changes ?? [],
    };
  }
}

/** Null: the route changes nothing that would have to be recorded. */
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

/** For the `onRoute` hook: those that need it get it, and the others pay nothing. */
export function auditRoute(context: ApiContext, route: RouteOptions): void {
  const action = auditedAction(route);
  if (action === null) return;
  route.preHandler = [
    async (request: FastifyRequest): Promise<void> => {
      request.audit = new AuditTrail(request, context, action);
    },
    ...listOf(route.preHandler),
  ];
  route.onSend = [
    ...listOf(route.onSend),
    async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const { audit } = request;
      // Refused before it got to the handler, or by it: nothing has changed.
      if (audit === undefined || audit.complete || reply.statusCode >= 400) return;
      await recordAfterwards(context, request);
    },
  ];
}

async function recordAfterwards({ pool, log }: ApiContext, request: FastifyRequest): Promise<void> {
  const { id = null } = request.params as { id?: string };
  const change: Change = { tenant: request.caller.tenant, objectId: id };
  try {
    await request.audit.record(pool, change);
  } catch (error) {
    log.error({ err: error, audit: request.audit.entry(change) }, 'a change could not be recorded');
    throw error;
  }
}

const LONGEST_VALUE = 1024;

/** The fields that differ. `shows` says whose values may be kept; of the others only the name is. */
export function fieldChanges(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  shows: (field: string) => boolean,
): FieldChange[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...fields].flatMap((field) => {
    const [was, is] = [JSON.stringify(before[field]) ?? 'null', JSON.stringify(after[field]) ?? 'null'];
    if (was === is) return [];
    if (!shows(field) || was.length > LONGEST_VALUE || is.length > LONGEST_VALUE) return [{ field }];
    return [{ field, before: before[field] ?? null, after: after[field] ?? null }];
  });
}
