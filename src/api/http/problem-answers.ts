/** Every way in which a request can go wrong, and the one kind of answer to it: application/problem+json. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { newId, publicId } from '../../domain/ids.ts';
import { Problem, type ProblemCode } from '../../domain/problem.ts';
import { endedTransaction } from '../../postgres/database.ts';
import { isOutage } from '../../postgres/failures.ts';
import type { ApiContext } from '../dependencies.ts';
import type { DocumentedRoute } from '../openapi/documented-route.ts';

type Failure = Error & { code?: string; statusCode?: number };

const CONTENT_TYPE = 'application/problem+json; charset=utf-8';

export function answerProblems(
  server: FastifyInstance,
  context: ApiContext,
  routes: readonly DocumentedRoute[],
): void {
  server.setNotFoundHandler(async (request, reply) => {
    const path = request.url.split('?')[0]!;
    const methods = methodsOf(path, routes);
    // The method is there, and the name of the object cannot be one.
    if (methods.length === 0 || methods.includes(request.method))
      throw new Problem('not_found', `There is no ${request.method} ${path}.`);
    void reply.header('allow', methods.join(', '));
    throw new Problem(
      'method_not_allowed',
      `There is no ${request.method} here, only ${methods.join(', ')}.`,
    );
  });
  server.setErrorHandler(async (error: Failure, request, reply) =>
    sendProblem(context, error, request, reply),
  );
}

/** Which there are at an address. Only whoever asked for another one waits for this. */
function methodsOf(path: string, routes: readonly DocumentedRoute[]): string[] {
  const parts = path.replace(/\/$/, '').split('/');
  const fitting = routes.filter(({ url }) => {
    const places = url.split('/');
    return (
      places.length === parts.length &&
      places.every((place, index) => (place.startsWith(':') ? parts[index] !== '' : place === parts[index]))
    );
  });
  const methods = new Set(fitting.map(({ method }) => method));
  if (fitting.some(({ method, noHead }) => method === 'GET' && noHead !== true)) methods.add('HEAD');
  return [...methods].sort();
}

export function sendProblem(
  context: ApiContext,
  error: Failure,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (request.audit !== undefined && endedTransaction(error)) request.audit.mayHaveChanged = false;
  const problem =
    error.code === 'FST_ERR_CTP_BODY_TOO_LARGE'
      ? bodyTooLarge(request.routeOptions.bodyLimit)
      : toProblem(error, request.audit?.mayHaveChanged);
  context.metrics?.rejected(problem.code);
  if (problem.status >= 500) {
    context.log.error(
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
  return reply.code(problem.status).header('content-type', CONTENT_TYPE).send(bodyOf(problem, request.id));
}

const bodyTooLarge = (limit: number): Problem =>
  new Problem(
    'too_large',
    `The body has more than ${limit} bytes, which is the most that is taken here. Send less at once, or a link to what is large.`,
    { errors: [{ path: 'body', message: `must have at most ${limit} bytes` }] },
  );

/** Whoever sends a secret in the wrong place should not find it in an answer that gets logged or pasted somewhere. */
const SECRET = /\b(phk|whsec|whsk)_[A-Za-z0-9+/=_%-]{2,}/g;

function bodyOf(problem: Problem, requestId: string): string {
  return JSON.stringify({ ...problem.toJSON(), request_id: requestId }).replace(SECRET, '$1_****');
}

/** Errors that Fastify raises itself, by its codes. */
const FASTIFY_CODES: Record<string, ProblemCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_REQ_INVALID_VALIDATION_INVOCATION: 'internal',
};
/** Instead of Fastify's words, which repeat what was sent. */
const DETAILS: Partial<Record<ProblemCode, string>> = {
  unsupported_media_type: 'Send the body as "content-type: application/json".',
  bad_request: 'The address of the request is malformed.',
  not_found: 'There is nothing with a name that long.',
};

const COME_BACK_SECONDS = 2;

/** `inDoubt`: a change may have been made before it went wrong, so nobody is asked to send the same again. */
export function toProblem(error: Failure, inDoubt = false): Problem {
  if (error instanceof Problem) return error;
  const code = error.code === undefined ? undefined : FASTIFY_CODES[error.code];
  if (code !== undefined) return new Problem(code, DETAILS[code] ?? error.message);
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('bad_request', error.message);
  if (isOutage(error) && inDoubt)
    return new Problem(
      'internal',
      'The database went away while this was carried out. Look whether it was before you send it again.',
      { cause: error },
    );
  if (isOutage(error))
    return new Problem('unavailable', 'The database did not answer in time. Try again shortly.', {
      retryAfterSeconds: COME_BACK_SECONDS,
      cause: error,
    });
  // What went wrong inside is for the log, not for the caller.
  return new Problem(
    'internal',
    'Something went wrong inside Posthorn. The request id finds it in the log.',
    { cause: error },
  );
}

/** What Node's parser refuses never becomes a request: the answer is written to the connection, which then ends. */
export function answerBrokenRequest(context: ApiContext) {
  return (error: Failure, socket: Socket): void => {
    const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } | null };
    if (error.code === 'ECONNRESET' || !socket.writable || answer?.headersSent === true) {
      socket.destroy();
      return;
    }
    const problem = brokenRequest(error.code);
    const requestId = publicId('req', newId(context.clock.now()));
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
      return new Problem('headers_too_large', 'Address and headers together must be smaller than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_timeout', 'The request was not complete in time.');
    default:
      return new Problem('bad_request', 'This is not a valid HTTP request.');
  }
}
