/** Turns every error into an answer of one kind: `application/problem+json` (RFC 9457). */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../domain/clock.ts';
import { newId, publicId } from '../../domain/ids.ts';
import { Problem, type ProblemCode } from '../../domain/problem.ts';
import { failedBeforeCommit } from '../../postgres/database.ts';
import { isOutage } from '../../postgres/failures.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ApiMetrics } from '../dependencies.ts';
import type { DocumentedRoute } from '../openapi/documented-route.ts';
import { answerWhileDraining } from './drain.ts';

export interface ProblemDependencies {
  readonly log: Log;
  readonly metrics: Pick<ApiMetrics, 'onRejected'> | null;
}

type Failure = Error & { code?: string; statusCode?: number };

const CONTENT_TYPE = 'application/problem+json; charset=utf-8';

export function answerProblems(
  server: FastifyInstance,
  dependencies: ProblemDependencies,
  routes: readonly DocumentedRoute[],
): void {
  server.setNotFoundHandler(async (request, reply) => {
    throw noRoute(request, reply, routes);
  });
  const literalUrls = new Set<string>();
  server.addHook('onReady', async () => {
    for (const { url } of routes) if (!hasParameter(url)) literalUrls.add(url);
  });
  server.addHook('onRequest', (request, reply, done) => {
    // Fastify would refuse a QUERY without a content type before it calls the handler for unknown routes.
    const isUnknownQuery = request.is404 && request.method === 'QUERY';
    // The router gives PATCH /v1/keys/current to /v1/keys/:id, but the address is not a key.
    const isHidden =
      hasParameter(request.routeOptions.url ?? '') && literalUrls.has(request.url.split('?')[0]!);
    done(isUnknownQuery || isHidden ? noRoute(request, reply, routes) : undefined);
  });
  server.setErrorHandler(async (error: Failure, request, reply) =>
    sendProblem(dependencies, error, request, reply),
  );
}

/** The problem of a request that no route takes. Sets `Allow` if the address has other methods. */
function noRoute(request: FastifyRequest, reply: FastifyReply, routes: readonly DocumentedRoute[]): Problem {
  const path = request.url.split('?')[0]!;
  const methods = methodsOf(path, routes);
  // With the right method, a parameter of the address was refused by the router.
  if (methods.length === 0 || methods.includes(request.method))
    return new Problem('not_found', `There is no ${request.method} ${path}.`);
  void reply.header('allow', methods.join(', '));
  return new Problem(
    'method_not_allowed',
    `${request.method} is not available here. Use ${methods.join(' or ')}.`,
  );
}

const hasParameter = (url: string): boolean => url.includes('/:');

/** The methods that an address has. `/v1/events/batch` is not an event: a literal route hides those with parameters. */
function methodsOf(path: string, routes: readonly DocumentedRoute[]): string[] {
  const parts = path.replace(/\/$/, '').split('/');
  const matching = routes.filter(({ url }) => {
    const segments = url.split('/');
    return (
      segments.length === parts.length &&
      segments.every((segment, index) =>
        segment.startsWith(':') ? parts[index] !== '' : segment === parts[index],
      )
    );
  });
  const literal = matching.filter(({ url }) => !hasParameter(url));
  const found = literal.length > 0 ? literal : matching;
  const methods = new Set(found.map(({ method }) => method));
  if (found.some(({ method, noHead }) => method === 'GET' && noHead !== true)) methods.add('HEAD');
  return [...methods].sort();
}

export function sendProblem(
  { log, metrics }: ProblemDependencies,
  error: Failure,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (request.audit !== undefined && failedBeforeCommit(error)) request.audit.mayHaveChanged = false;
  const isBodyTooLarge = error.code === 'FST_ERR_CTP_BODY_TOO_LARGE';
  const problem = isBodyTooLarge
    ? bodyTooLarge(request.routeOptions.bodyLimit)
    : toProblem(error, request.audit?.mayHaveChanged);
  metrics?.onRejected(problem.code);
  if (problem.status >= 500) {
    log.error(
      {
        request_id: request.id,
        method: request.method,
        path: request.routeOptions.url,
        err: problem.cause ?? error,
      },
      'request failed',
    );
  }
  if (problem.retryAfterSeconds !== null) void reply.header('retry-after', problem.retryAfterSeconds);
  if (problem.code === 'unauthorized') void reply.header('www-authenticate', 'Bearer');
  const body = bodyOf(problem, request.id);
  void reply.code(problem.status).header('content-type', CONTENT_TYPE);
  if (!isBodyTooLarge) return reply.send(body);
  void reply.header('content-length', Buffer.byteLength(body));
  return reply.send(answerWhileDraining(request.raw, Buffer.from(body)));
}

const bodyTooLarge = (limit: number): Problem =>
  new Problem(
    'too_large',
    `The body is larger than ${limit} bytes, the limit of this route. Send less at once, or a link to large content.`,
    { errors: [{ path: 'body', message: `must be at most ${limit} bytes` }] },
  );

/** A secret that was sent in the wrong place must not be repeated in an answer, which may get logged. */
const SECRET = /\b(phk|phs|whsec|whsk)_[A-Za-z0-9+/=_%-]{2,}/g;

function bodyOf(problem: Problem, requestId: string): string {
  return JSON.stringify({ ...problem.toJSON(), request_id: requestId }).replace(SECRET, '$1_****');
}

/** Errors of Fastify itself, by their codes. */
const FASTIFY_CODES: Record<string, ProblemCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_REQ_INVALID_VALIDATION_INVOCATION: 'internal',
};
/** Instead of Fastify's messages, which repeat what was sent. */
const DETAILS: Partial<Record<ProblemCode, string>> = {
  unsupported_media_type: 'Send the body as "content-type: application/json".',
  bad_request: 'The URL of the request is malformed.',
  not_found: 'There is no object with a name this long.',
};

const RETRY_AFTER_SECONDS = 2;

/**
 * The problem to answer an error with. `mayHaveChanged`: a change may have committed before the error, so the answer must
 * not ask the caller to repeat the request.
 */
export function toProblem(error: Failure, mayHaveChanged = false): Problem {
  if (error instanceof Problem) return error;
  const code = error.code === undefined ? undefined : FASTIFY_CODES[error.code];
  if (code !== undefined) return new Problem(code, DETAILS[code] ?? error.message);
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('bad_request', error.message);
  if (isOutage(error) && mayHaveChanged)
    return new Problem(
      'internal',
      'The database connection was lost during this change. Check whether it was made before you repeat the request.',
      { cause: error },
    );
  if (isOutage(error))
    return new Problem('unavailable', 'The database did not answer in time. Try again shortly.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause: error,
    });
  // The cause is for the log, not for the caller.
  return new Problem(
    'internal',
    'Posthorn failed to handle the request. Its log has the cause, under the request id.',
    { cause: error },
  );
}

/** Answers what Node's HTTP parser refuses. Fastify never sees it, so the answer is written to the socket directly. */
export function answerBrokenRequest(clock: Clock) {
  return (error: Failure, socket: Socket): void => {
    const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } | null };
    // A client may open a connection and not use it. Posthorn closes it without an answer, because there was no request.
    const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0;
    if (isUnused || error.code === 'ECONNRESET' || !socket.writable || answer?.headersSent === true) {
      socket.destroy();
      return;
    }
    const problem = brokenRequest(error.code);
    const requestId = publicId('req', newId(clock.now()));
    const body = bodyOf(problem, requestId);
    socket.write(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nx-request-id: ${requestId}\r\n` +
        `x-content-type-options: nosniff\r\ncache-control: no-store\r\ncontent-type: ${CONTENT_TYPE}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
    socket.destroySoon();
  };
}

function brokenRequest(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem(
        'headers_too_large',
        'The URL and the headers together must be smaller than 16 KiB.',
      );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_timeout', 'The request did not arrive completely in time.');
    default:
      return new Problem('bad_request', 'This is not a valid HTTP request.');
  }
}
