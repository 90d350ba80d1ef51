import Fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { newId, publicId } from '../domain/ids.ts';
import { Problem, type ProblemCode } from '../domain/problem.ts';
import type { Caller } from './auth.ts';
import type { ApiContext } from './context.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { deliveryRoutes } from './deliveries.ts';
import { endpointSecretRoutes } from './endpoint-secrets.ts';
import { endpointStatsRoutes } from './endpoint-stats.ts';
import { endpointRoutes } from './endpoints.ts';
import { eventRoutes } from './events.ts';
import { eventReadRoutes } from './events-read.ts';
import { healthRoutes } from './health.ts';
import { keyRoutes } from './keys.ts';
import { replayRoutes } from './replay.ts';
import { sentRequestRoutes } from './sent-requests.ts';
import { taskRoutes } from './tasks.ts';
import { testEventRoutes } from './test-events.ts';
import { compileSchema } from './validation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** The handler reads the body's bytes itself. */
    rawBody?: boolean;
    /** Changes nothing although it is not a GET: a read-only key may. */
    reads?: boolean;
    /** Only with an admin key. */
    admin?: boolean;
  }
}

export interface ServerOptions {
  readonly requestTimeoutMs: number;
  /** A stop waits that long for requests under way; then their connections are cut. */
  readonly closeWithinMs: number;
  /** A worker without the API still says whether it lives and is ready. */
  readonly healthOnly: boolean;
}

const HEADERS_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
const SMALL_BODY_BYTES = 1024 * 1024;

export async function createServer(context: ApiContext, options: ServerOptions): Promise<FastifyInstance> {
  const server = Fastify({
    logger: false,
    genReqId: () => publicId('req', newId(context.clock.now())),
    requestIdHeader: false,
    bodyLimit: Math.max(context.limits.maxBatchBytes, SMALL_BODY_BYTES),
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
  });
  server.server.headersTimeout = HEADERS_TIMEOUT_MS;
  closeConnections(server, options.closeWithinMs);
  server.decorateRequest('caller');
  readBodies(server);
  server.setValidatorCompiler(({ schema, httpPart }) => compileSchema(schema as TSchema, httpPart ?? 'body'));
  // Answers are made by hand from typed values: compiling serializers would only repeat them.
  server.setSerializerCompiler(() => JSON.stringify);
  answerProblems(server, context);

  server.addHook('onRequest', (request, reply, done) => {
    void reply
      .header('x-request-id', request.id)
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', 'no-store');
    done();
  });
  server.addHook('onResponse', (request, reply, done) => {
    if (context.log.isLevelEnabled('debug')) {
      context.log.debug(
        {
          request_id: request.id,
          method: request.method,
          path: request.routeOptions.url,
          status: reply.statusCode,
          ms: Math.round(reply.elapsedTime),
        },
        'request',
      );
    }
    done();
  });

  await server.register(healthRoutes(context));
  if (options.healthOnly) return server;
  await server.register(v1Routes(context), { prefix: '/v1' });
  return server;
}

function v1Routes(context: ApiContext): FastifyPluginAsync {
  return async (v1) => {
    v1.addHook('onRequest', (request, _reply, done) => {
      const admit = (caller: Caller): void => {
        request.caller = caller;
        authorize(request);
      };
      try {
        const caller = context.authenticator.authenticate(request.headers.authorization);
        if (caller instanceof Promise) return void caller.then(admit).then(() => done(), done);
        admit(caller);
        done();
      } catch (error) {
        done(error as Error);
      }
    });
    await v1.register(endpointRoutes(context));
    await v1.register(endpointSecretRoutes(context));
    await v1.register(endpointStatsRoutes(context));
    await v1.register(testEventRoutes(context));
    await v1.register(eventRoutes(context));
    await v1.register(eventReadRoutes(context));
    await v1.register(deliveryRoutes(context));
    await v1.register(sentRequestRoutes(context));
    await v1.register(replayRoutes(context));
    await v1.register(deadLetterRoutes(context));
    await v1.register(taskRoutes(context));
    await v1.register(keyRoutes(context));
  };
}

const IDLE_CHECK_MS = 20;

/**
 * Closing a server closes the connections that are idle just then. One that becomes idle a moment later, after its
 * last answer, would hold the stop up for as long as its client keeps it.
 */
function closeConnections(fastify: FastifyInstance, withinMs: number): void {
  const { server } = fastify;
  fastify.addHook('preClose', (done) => {
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS).unref();
    const deadline = setTimeout(() => server.closeAllConnections(), withinMs).unref();
    server.once('close', () => {
      clearInterval(idle);
      clearTimeout(deadline);
    });
    done();
  });
}

function authorize(request: FastifyRequest): void {
  const { caller, method } = request;
  const { admin, reads } = request.routeOptions.config;
  if (caller.scope === 'read' && method !== 'GET' && method !== 'HEAD' && reads !== true) {
    throw new Problem('forbidden', 'This key may only read.');
  }
  if (admin === true && caller.scope !== 'admin') throw new Problem('forbidden', 'This needs an admin key.');
}

/** Only JSON is taken. Handlers that carry bytes on (events) get the bytes. */
function readBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (request.routeOptions.config.rawBody === true) return done(null, body);
    // An empty body is no body: POST …/pause needs none.
    if (body.length === 0) return done(null, undefined);
    try {
      done(null, JSON.parse(body.toString('utf8')));
    } catch (error) {
      done(new Problem('malformed_json', `The body is not valid JSON: ${(error as Error).message}`));
    }
  });
}

/** Errors that Fastify raises itself, by its codes. */
const FASTIFY_CODES: Record<string, ProblemCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_REQ_INVALID_VALIDATION_INVOCATION: 'internal',
};

function answerProblems(server: FastifyInstance, context: ApiContext): void {
  server.setNotFoundHandler(async (request) => {
    throw new Problem('not_found', `There is no ${request.method} ${request.url.split('?')[0]}.`);
  });
  server.setErrorHandler(async (error: Error & { code?: string; statusCode?: number }, request, reply) => {
    const problem = toProblem(error);
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
    return reply
      .code(problem.status)
      .header('content-type', 'application/problem+json; charset=utf-8')
      .send(JSON.stringify({ ...problem.toJSON(), request_id: request.id }));
  });
}

function toProblem(error: Error & { code?: string; statusCode?: number }): Problem {
  if (error instanceof Problem) return error;
  const code = error.code === undefined ? undefined : FASTIFY_CODES[error.code];
  if (code === 'unsupported_media_type')
    return new Problem(code, 'Send the body as "content-type: application/json".');
  if (code !== undefined) return new Problem(code, error.message);
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('bad_request', error.message);
  // What went wrong inside is for the log, not for the caller.
  return new Problem(
    'internal',
    'Something went wrong inside Posthorn. The request id finds it in the log.',
    { cause: error },
  );
}
