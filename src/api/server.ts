import Fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type FastifyReply,
  type FastifyRequest,
  type RouteOptions,
} from 'fastify';
import { type TSchema, Type } from 'typebox';
import { newId, publicId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { auditRoutes } from './audit.ts';
import { auditRoute } from './audit-trail.ts';
import type { Caller } from './auth.ts';
import { consoleRoutes } from './console/routes.ts';
import type { ApiContext } from './context.ts';
import { deadLetterGroupRoutes } from './dead-letter-groups.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { deliveryRoutes } from './deliveries.ts';
import { endpointSecretRoutes } from './endpoint-secrets.ts';
import { endpointStatsRoutes } from './endpoint-stats.ts';
import { endpointRoutes } from './endpoints.ts';
import { eventTypeRoutes } from './event-types.ts';
import { eventRoutes } from './events.ts';
import { eventReadRoutes } from './events-read.ts';
import { filterRoutes } from './filters.ts';
import { healthRoutes } from './health.ts';
import { listOf } from './hooks.ts';
import { makeIdempotent } from './idempotent-requests.ts';
import { inboxReceiver } from './inbox/receive.ts';
import { inboxRoutes } from './inbox/routes.ts';
import { keyRoutes } from './keys.ts';
import { metricsRoutes } from './metrics.ts';
import { collectRoutes, openApiRoutes } from './openapi/routes.ts';
import { answerBrokenRequest, answerProblems, sendProblem } from './problem-answers.ts';
import { readJson } from './read-json.ts';
import { replayRoutes } from './replay.ts';
import { sentRequestRoutes } from './sent-requests.ts';
import { statsRoutes } from './stats.ts';
import { streamRoutes } from './stream.ts';
import { taskRoutes } from './tasks.ts';
import { tenantRoutes } from './tenants.ts';
import { testEventRoutes } from './test-events.ts';
import { compileSchema } from './validation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** The handler reads the body's bytes itself. */
    rawBody?: boolean;
    /** True: changes nothing although it is not a GET. False: shows what a read-only key must not see. */
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
  /** True once it is stopping: every answer from then on is the last one of its connection. */
  readonly isLeaving?: () => boolean;
}

const HEADERS_TIMEOUT_MS = 10_000;
/** How often slow requests are looked for: Node's own half minute would make every timeout one. */
const CHECK_TIMEOUTS_MS = 500;
const KEEP_ALIVE_MS = 65_000;
const SMALL_BODY_BYTES = 1024 * 1024;

/** On every answer. It is data for programs: no browser should guess, keep, frame or run any of it. No CORS headers. */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

export async function createServer(context: ApiContext, options: ServerOptions): Promise<FastifyInstance> {
  const server = Fastify({
    logger: false,
    genReqId: () => publicId('req', newId(context.clock.now())),
    requestIdHeader: false,
    bodyLimit: Math.max(context.limits.maxBatchBytes, SMALL_BODY_BYTES),
    requestTimeout: options.requestTimeoutMs,
    http: {
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, options.requestTimeoutMs),
      connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
      // Checked below instead, so that the answer is a problem like all others.
      requireHostHeader: false,
    },
    clientErrorHandler: answerBrokenRequest(context),
    frameworkErrors: (error, request, reply) => {
      // Before any hook has run.
      void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
      void sendProblem(context, error, request, reply);
    },
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // A request that arrives on an open connection while it closes is answered like any other.
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
  });
  server.server.on('checkExpectation', (request, response) => {
    // What is expected is not understood, so it is as if it had not been said.
    server.server.emit('request', request, response);
  });
  closeConnections(server, options.closeWithinMs);
  server.decorateRequest('caller');
  server.decorateRequest('audit');
  server.decorateRequest('claim', null);
  readBodies(server, context.limits.maxNesting);
  server.setValidatorCompiler(({ schema, httpPart }) => compileSchema(schema as TSchema, httpPart ?? 'body'));
  // Answers are made by hand from typed values: compiling serializers would only repeat them.
  server.setSerializerCompiler(() => JSON.stringify);
  const routes = collectRoutes(server);
  answerProblems(server, context, routes);

  server.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
    const { httpVersionMajor, httpVersionMinor } = request.raw;
    if (httpVersionMajor !== 1) return done(new Problem('bad_request', 'Only HTTP/1.1 is spoken here.'));
    if (httpVersionMinor === 1 && request.headers.host === undefined)
      return done(new Problem('bad_request', 'The header "host" is missing.'));
    done();
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (options.isLeaving?.() === true) void reply.header('connection', 'close');
    done(null, payload);
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
  await server.register(metricsRoutes(context));
  if (options.healthOnly) return server;
  await server.register(v1Routes(context), { prefix: '/v1' });
  await server.register(openApiRoutes(context, routes));
  await server.register(consoleRoutes());
  if (context.inboxes !== null) await server.register(inboxReceiver(context, context.inboxes));
  return server;
}

function v1Routes(context: ApiContext): FastifyPluginAsync {
  return async (v1) => {
    // Events may be large, settings may not.
    v1.addHook('onRoute', (route) => {
      route.bodyLimit ??= SMALL_BODY_BYTES;
      route.config = { ...route.config, needsKey: true };
      refuseBody(route);
      auditRoute(context, route);
      makeIdempotent(context, route);
    });
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
    await v1.register(filterRoutes(context));
    await v1.register(endpointStatsRoutes(context));
    await v1.register(statsRoutes(context));
    await v1.register(streamRoutes(context));
    await v1.register(testEventRoutes(context));
    await v1.register(eventRoutes(context));
    await v1.register(eventReadRoutes(context));
    await v1.register(deliveryRoutes(context));
    await v1.register(sentRequestRoutes(context));
    await v1.register(replayRoutes(context));
    await v1.register(deadLetterRoutes(context));
    await v1.register(deadLetterGroupRoutes(context));
    await v1.register(taskRoutes(context));
    await v1.register(keyRoutes(context));
    await v1.register(tenantRoutes(context));
    await v1.register(eventTypeRoutes(context));
    await v1.register(auditRoutes(context));
    if (context.inboxes !== null) await v1.register(inboxRoutes(context, context.inboxes));
  };
}

const checkEmpty = compileSchema(Type.Object({}, { additionalProperties: false }), 'body');

/** Where nothing is expected, whatever comes is a mistake: somebody believes that it does something. */
function refuseBody(route: RouteOptions): void {
  if (route.schema?.body !== undefined || route.config?.rawBody === true || route.method === 'GET') return;
  route.preValidation = [
    ...listOf(route.preValidation),
    (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) => {
      const checked = checkEmpty(request.body);
      done('error' in checked ? checked.error : undefined);
    },
  ];
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
  if (caller.scope === 'read' && !(reads ?? (method === 'GET' || method === 'HEAD'))) {
    throw new Problem(
      'forbidden',
      reads === false ? 'This key may not see secrets.' : 'This key may only read.',
    );
  }
  if (admin === true && caller.scope !== 'admin') throw new Problem('forbidden', 'This needs an admin key.');
}

/** What every PATCH is: null removes a field (RFC 7396). */
const MERGE_PATCH = 'application/merge-patch+json';

/** Only JSON is taken, in UTF-8 and not compressed. Handlers that carry bytes on (events) get the bytes. */
function readBodies(server: FastifyInstance, maxNesting: number): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    ['application/json', MERGE_PATCH],
    { parseAs: 'buffer' },
    (request, body, done) => {
      const { 'content-type': type, 'content-encoding': encoding } = request.headers;
      if (request.method !== 'PATCH' && type!.toLowerCase().startsWith(MERGE_PATCH))
        return done(
          new Problem('unsupported_media_type', `Only PATCH takes "content-type: ${MERGE_PATCH}".`),
        );
      if (encoding !== undefined || (type !== 'application/json' && OTHER_CHARSET.test(type!)))
        return done(new Problem('unsupported_media_type', 'Send JSON in UTF-8, without a content-encoding.'));
      if (request.routeOptions.config.rawBody === true) return done(null, body);
      // An empty body is no body: POST …/pause needs none.
      if (body.length === 0) return done(null, undefined);
      try {
        done(null, readJson(body as Buffer, maxNesting));
      } catch (error) {
        done(error as Error);
      }
    },
  );
}
const OTHER_CHARSET = /;\s*charset\s*=\s*(?!"?utf-?8"?\s*(?:;|$))/i;
