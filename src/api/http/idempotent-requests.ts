/**
 * `Idempotency-Key` on every POST that changes something (publishing events has its own, see ingest):
 *
 *   new key ──▶ claimed ──▶ handler runs ──▶ the answer is stored and sent
 *                  │            ├ 5xx, 429: the key is released, a repeat runs the handler again
 *                  │            └ 5xx after a change that may have committed: the claim stays until it expires
 *                  └ the process died: the claim expires, and a repeat runs the handler again
 *   same key, same request          the stored answer, with `idempotency-replayed: true`
 *   same key, still in progress     409, retry after a second
 *   same key, another request       409
 *
 * Idempotency keys belong to the API key that sends them, so nobody gets another caller's answer.
 */
import { createHmac } from 'node:crypto';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '../../domain/clock.ts';
import { newId, type Uuid } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { nameOfCaller } from '../../manage/caller.ts';
import type { Pool } from '../../postgres/database.ts';
import {
  claimRequest,
  releaseClaim,
  sealOwnerOf,
  storeAnswer,
} from '../../postgres/queries/idempotent-requests.ts';
import type { SecretBox } from '../../postgres/secret-box.ts';
import type { Log } from '../../telemetry/log.ts';
import { sessionTokenIn } from '../sign-in/sessions.ts';
import { bearerToken } from './authenticator.ts';
import { listOf } from './hooks.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The claim on its idempotency key, while the handler runs. */
    claim: Uuid | null;
  }
  interface FastifyContextConfig {
    /** The route accepts an `Idempotency-Key`. Set for every POST that changes something. */
    idempotent?: boolean;
  }
}

export interface IdempotencyOptions {
  /** How long an answer is stored. */
  readonly ttlMs: number;
  /** How long a claim is held for a request that does not finish. */
  readonly claimMs: number;
  /** Encrypts stored answers, which may contain a secret. */
  readonly secretBox: SecretBox;
}

export interface IdempotencyDependencies {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly idempotency: IdempotencyOptions;
}

interface StoredAnswer {
  readonly status: number;
  readonly body: string;
  readonly contentType: string;
  readonly location: string | null;
}

const MAX_KEY_LENGTH = 255;
const RETRY_AFTER_SECONDS = 1;

const Header = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_KEY_LENGTH,
      description:
        'A repeated request with the same key gets the answer of the first one, and changes nothing.',
    }),
  ),
});

/** Adds the hooks to a POST that changes something. Call it from an `onRoute` hook. */
export function makeIdempotent(dependencies: IdempotencyDependencies, route: RouteOptions): void {
  const { reads, publishes } = route.config ?? {};
  if (route.method !== 'POST' || reads === true || publishes === true) return;
  route.config = {
    ...route.config,
    idempotent: true,
    documents: { ...route.config?.documents, headers: Header },
  };
  route.preHandler = [
    ...listOf(route.preHandler),
    async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
      const key = readKey(request);
      return key === null ? undefined : begin(dependencies, request, reply, key);
    },
  ];
  route.onSend = [
    ...listOf(route.onSend),
    async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
      if (request.claim) await finish(dependencies, request, reply, payload);
      return payload;
    },
  ];
}

function readKey(request: FastifyRequest): string | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && key.length >= 1 && key.length <= MAX_KEY_LENGTH) return key;
  throw invalidField('idempotency-key', `must be 1 to ${MAX_KEY_LENGTH} characters`);
}

/** Claims the key. Returns the answer if the same request was answered before; undefined: run the handler. */
async function begin(
  { pool, clock, idempotency }: IdempotencyDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
): Promise<FastifyReply | undefined> {
  const id = newId(clock.now());
  const fingerprint = fingerprintOf(request);
  const earlier = await claimRequest(
    pool,
    { id, owner: nameOfCaller(request.caller), key, fingerprint },
    idempotency,
  );
  if (earlier === null) {
    request.claim = id;
    return undefined;
  }
  if (!earlier.fingerprint.equals(fingerprint))
    throw new Problem(
      'idempotency_conflict',
      'The idempotency key was used for another request: the address or the body differs. Use a new key.',
      { errors: [{ path: 'idempotency-key', message: 'was used for another request' }] },
    );
  if (earlier.answer === null)
    throw new Problem('request_in_progress', 'The same request is still in progress.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  // The first request recorded what it changed.
  request.audit.markUnchanged();
  const answer = idempotency.secretBox.open(earlier.answer, sealOwnerOf(earlier.id));
  return sendStored(reply, JSON.parse(answer) as StoredAnswer);
}

function sendStored(reply: FastifyReply, answer: StoredAnswer): FastifyReply {
  if (answer.location !== null) void reply.header('location', answer.location);
  return reply
    .code(answer.status)
    .header('content-type', answer.contentType)
    .header('idempotency-replayed', 'true')
    .send(answer.body);
}

async function finish(
  { pool, idempotency, log }: IdempotencyDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<void> {
  const id = request.claim!;
  request.claim = null;
  try {
    if (reply.statusCode >= 500 && request.audit.mayHaveChanged) return;
    if (reply.statusCode >= 500 || reply.statusCode === 429) return await releaseClaim(pool, id);
    const answer: StoredAnswer = {
      status: reply.statusCode,
      body: String(payload ?? ''),
      contentType: String(reply.getHeader('content-type') ?? 'application/json; charset=utf-8'),
      location: reply.hasHeader('location') ? String(reply.getHeader('location')) : null,
    };
    const sealed = idempotency.secretBox.seal(JSON.stringify(answer), sealOwnerOf(id));
    const tenant =
      request.caller.tenant ?? request.audit.tenant ?? tenantIn(answer.body) ?? tenantOf(request.body);
    await storeAnswer(pool, { id, tenant }, sealed, idempotency.ttlMs);
  } catch (error) {
    // The change is made and the caller gets the answer. But a repeat after the claim expires would run again.
    log.error({ err: error, request_id: request.id }, 'the answer to an idempotent request was not stored');
  }
}

/** The tenant that an answer names, for requests whose audit entry has none. */
function tenantIn(body: string): string | null {
  try {
    return tenantOf(JSON.parse(body));
  } catch {
    return null;
  }
}

/** A task names it in its filter. */
function tenantOf(value: unknown): string | null {
  const { tenant, filter } = (value ?? {}) as { tenant?: unknown; filter?: { tenant?: unknown } | null };
  const found = tenant ?? filter?.tenant;
  return typeof found === 'string' ? found : null;
}

/**
 * Identifies a request by its method, address and body. Fields in another order make another request. The API key or
 * the token of the session, which are not in the database, is the key of the HMAC, so a reader of the database cannot
 * guess a password in the body.
 */
function fingerprintOf({ method, url, body, headers, caller }: FastifyRequest): Buffer {
  const credential =
    caller.user === undefined
      ? `Bearer ${bearerToken(headers.authorization)}`
      : (sessionTokenIn(headers.cookie) ?? '');
  return createHmac('sha256', credential)
    .update(`${method} ${url}\n`)
    .update(JSON.stringify(body ?? {}))
    .digest();
}
