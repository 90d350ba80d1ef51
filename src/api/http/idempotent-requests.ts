/**
 * `Idempotency-Key` on every POST that changes something (publishing events has its own, see ingest):
 *
 *   new key ──▶ claimed ──▶ carried out ──▶ the answer is stored, and sent
 *                  │            ├ 5xx, 429: the key is free again, nothing was decided
 *                  │            └ 5xx after a change that may have been made: as if the process had died
 *                  └ the process died: the claim lapses, and a repeat is carried out again
 *   same key, same request      the stored answer, with `idempotency-replayed: true`
 *   same key, still under way   409, come back in a second
 *   same key, other request     409
 *
 * Keys belong to the API key that uses them: nobody gets another's answer, which may show a secret.
 */
import { createHmac } from 'node:crypto';
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { newId, type Uuid } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import {
  answerOf,
  claimRequest,
  releaseClaim,
  storeAnswer,
} from '../../postgres/queries/idempotent-requests.ts';
import type { ApiContext } from '../dependencies.ts';
import { keyIn, nameOf } from './authenticator.ts';
import { listOf } from './hooks.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of its idempotency key, while it is being carried out. */
    claim: Uuid | null;
  }
  interface FastifyContextConfig {
    /** Takes an `Idempotency-Key`; set for every POST that changes something. */
    idempotent?: boolean;
  }
}

interface StoredAnswer {
  readonly status: number;
  readonly body: string;
  readonly contentType: string;
  readonly location: string | null;
}

const MAX_KEY_LENGTH = 255;
const COME_BACK_SECONDS = 1;

const Header = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_KEY_LENGTH,
      description:
        'The same request with the same key gets the first one’s answer, and changes nothing more.',
    }),
  ),
});

/** For the `onRoute` hook: those that it is for get it, and the others pay nothing. */
export function makeIdempotent(context: ApiContext, route: RouteOptions): void {
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
      return key === null ? undefined : begin(context, request, reply, key);
    },
  ];
  route.onSend = [
    ...listOf(route.onSend),
    async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
      if (request.claim) await finish(context, request, reply, payload);
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

/** Undefined: carry it out. */
async function begin(
  { pool, clock, idempotency, secretBox }: ApiContext,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
): Promise<FastifyReply | undefined> {
  const id = newId(clock.now());
  const fingerprint = fingerprintOf(request);
  const earlier = await claimRequest(
    pool,
    { id, owner: nameOf(request.caller), key, fingerprint },
    idempotency,
  );
  if (earlier === null) {
    request.claim = id;
    return undefined;
  }
  if (!earlier.fingerprint.equals(fingerprint))
    throw new Problem(
      'idempotency_conflict',
      'The idempotency key was used for another request: another address, or another body.',
      { errors: [{ path: 'idempotency-key', message: 'was used for something else' }] },
    );
  if (earlier.answer === null)
    throw new Problem('request_in_progress', 'The same request is being carried out just now.', {
      retryAfterSeconds: COME_BACK_SECONDS,
    });
  // Whatever it changed was recorded then.
  request.audit.nothingChanged();
  return replay(reply, JSON.parse(secretBox.open(earlier.answer, answerOf(earlier.id))) as StoredAnswer);
}

function replay(reply: FastifyReply, answer: StoredAnswer): FastifyReply {
  if (answer.location !== null) void reply.header('location', answer.location);
  return reply
    .code(answer.status)
    .header('content-type', answer.contentType)
    .header('idempotency-replayed', 'true')
    .send(answer.body);
}

async function finish(
  { pool, idempotency, secretBox, log }: ApiContext,
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
    await storeAnswer(pool, id, secretBox.seal(JSON.stringify(answer), answerOf(id)), idempotency.ttlMs);
  } catch (error) {
    // What it did is done, and whoever asked gets the answer. Only a repeat would be carried out again, later.
    log.error({ err: error, request_id: request.id }, 'the answer to an idempotent request was not stored');
  }
}

/**
 * As text, so a body whose fields are in another order is another one. Keyed by the API key, which is nowhere in the
 * database: whoever reads that cannot guess at a password in the body.
 */
function fingerprintOf({ method, url, body, headers }: FastifyRequest): Buffer {
  return createHmac('sha256', `Bearer ${keyIn(headers.authorization)}`)
    .update(`${method} ${url}\n`)
    .update(JSON.stringify(body ?? {}))
    .digest();
}
