import Fastify, { type FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import { newId, publicId } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import type { Log } from '../../telemetry/log.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { DocumentedRoute } from '../openapi/documented-route.ts';
import { collectRoutes } from '../openapi/routes.ts';
import { answerBrokenRequest, answerProblems, sendProblem } from './problem-answers.ts';
import { readJson } from './read-json.ts';
import { limitUnreadAnswers } from './unread-answers.ts';
import { SMALL_BODY_BYTES } from './v1.ts';
import { compileSchema, needsBody } from './validation.ts';

export interface HttpServerOptions {
  readonly requestTimeoutMs: number;
  /** How long an answer may wait until its client reads it. */
  readonly answerTimeoutMs: number;
  /** How long closing waits for requests in progress, before it cuts their connections. */
  readonly closeWithinMs: number;
  /** Further connections are closed at once. Null: no limit. */
  readonly maxConnections?: number | null;
  /** True once the server is stopping. From then on every answer closes its connection. */
  readonly isStopping?: () => boolean;
}

type ServerDependencies = Pick<ApiDependencies, 'clock' | 'log' | 'metrics' | 'publishing'>;

const HEADERS_TIMEOUT_MS = 10_000;
/** How often Node checks for slow requests. Its default of 30 s would make every timeout at least that long. */
const CHECK_TIMEOUTS_MS = 500;
const KEEP_ALIVE_MS = 65_000;

/** Sent with every answer: browsers must not guess its type, cache, frame or run it. There are no CORS headers. */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

/** Creates a server without routes. `routes` fills up as they are registered. */
export function createServer(
  dependencies: ServerDependencies,
  options: HttpServerOptions,
): { server: FastifyInstance; routes: readonly DocumentedRoute[] } {
  const { clock, log, publishing } = dependencies;
  const server = Fastify({
    logger: false,
    genReqId: () => publicId('req', newId(clock.now())),
    requestIdHeader: false,
    bodyLimit: Math.max(publishing.limits.maxBatchBytes, SMALL_BODY_BYTES),
    requestTimeout: options.requestTimeoutMs,
    http: {
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, options.requestTimeoutMs),
      connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
      // Checked in `checkRequests` instead, so that the answer is a problem like any other.
      requireHostHeader: false,
    },
    clientErrorHandler: answerBrokenRequest(clock),
    frameworkErrors: (error, request, reply) => {
      // These errors occur before the hooks run.
      void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
      void sendProblem(dependencies, error, request, reply);
    },
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // A request that arrives on an open connection while it closes is answered like any other.
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
  });
  server.server.on('checkExpectation', (request, response) => {
    // An unknown `Expect` header is ignored.
    server.server.emit('request', request, response);
  });
  limitConnections(server, options.maxConnections ?? null, dependencies);
  closeUnread(server, options.answerTimeoutMs, dependencies);
  closeConnections(server, options.closeWithinMs);
  server.decorateRequest('caller');
  server.decorateRequest('audit');
  server.decorateRequest('claim', null);
  readBodies(server, publishing.limits.maxNesting);
  server.setValidatorCompiler(({ schema, httpPart, method }) =>
    compileSchema(schema as TSchema, httpPart ?? 'body', { bodyRequired: needsBody(method) }),
  );
  // Answers are built from typed values, so a compiled serializer would check nothing new.
  server.setSerializerCompiler(() => JSON.stringify);
  const routes = collectRoutes(server);
  answerProblems(server, dependencies, routes);
  checkRequests(server);
  closeConnectionsWhenStopping(server, options);
  logRequests(server, log);
  return { server, routes };
}

const DROPPED_LOG_MS = 10_000;

function limitConnections(
  { server }: FastifyInstance,
  limit: number | null,
  { clock, log }: Pick<ServerDependencies, 'clock' | 'log'>,
): void {
  if (limit === null) return;
  server.maxConnections = limit;
  // Otherwise a child of `serve --processes N` at its limit returns the connection to the supervisor, which offers it
  // again and again. Node documents the property; its type declarations lack it.
  Object.assign(server, { dropMaxConnection: true });
  let dropped = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    dropped += 1;
    const now = clock.monotonic();
    if (now - loggedAt < DROPPED_LOG_MS) return;
    log.error({ limit, dropped }, 'too many connections; new ones are closed');
    loggedAt = now;
    dropped = 0;
  });
}

/** How many bytes all answers together may have that their clients do not read. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;

function closeUnread(
  { server }: FastifyInstance,
  timeoutMs: number,
  { clock, log, metrics }: Pick<ServerDependencies, 'clock' | 'log' | 'metrics'>,
): void {
  limitUnreadAnswers(server, {
    clock,
    timeoutMs,
    maxBytes: MAX_UNREAD_BYTES,
    onClosed(count) {
      metrics?.onUnreadClosed(count);
      log.warn({ connections: count }, 'closed connections whose clients do not read the answer');
    },
  });
}

/** Sets the headers of every answer, and refuses what is not HTTP/1. */
function checkRequests(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', request.id).headers(SECURITY_HEADERS);
    const { httpVersionMajor, httpVersionMinor } = request.raw;
    if (httpVersionMajor !== 1)
      return done(new Problem('bad_request', 'Only HTTP/1.0 and HTTP/1.1 are supported.'));
    if (httpVersionMinor === 1 && request.headers.host === undefined)
      return done(new Problem('bad_request', 'The header "host" is missing.'));
    if (hasTwoHosts(request.raw.rawHeaders))
      return done(new Problem('bad_request', 'The header "host" is given more than once.'));
    done();
  });
}

/** Node keeps the first `host` and drops the others. A proxy may have routed the request by another one. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

/** While the server is stopping, every answer asks its client to open a new connection elsewhere. */
function closeConnectionsWhenStopping(server: FastifyInstance, { isStopping }: HttpServerOptions): void {
  if (isStopping === undefined) return;
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (isStopping()) void reply.header('connection', 'close');
    done(null, payload);
  });
}

function logRequests(server: FastifyInstance, log: Log): void {
  server.addHook('onResponse', (request, reply, done) => {
    if (log.isLevelEnabled('debug')) {
      log.debug(
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
}

const IDLE_CHECK_MS = 20;

/**
 * Closing a server closes only connections that are idle at that moment. This also closes those that become idle later;
 * otherwise their clients could delay the stop.
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

/** The media type of a PATCH: null removes a field (RFC 7396). */
const MERGE_PATCH = 'application/merge-patch+json';

/** Accepts only JSON, in UTF-8 and not compressed. Routes with `rawBody` get the bytes. */
function readBodies(server: FastifyInstance, maxNesting: number): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    ['application/json', MERGE_PATCH],
    { parseAs: 'buffer' },
    (request, body, done) => {
      const { 'content-type': type, 'content-encoding': encoding } = request.headers;
      if (request.method !== 'PATCH' && type!.toLowerCase().startsWith(MERGE_PATCH))
        return done(
          new Problem('unsupported_media_type', `Only PATCH accepts "content-type: ${MERGE_PATCH}".`),
        );
      if (encoding !== undefined || (type !== 'application/json' && OTHER_CHARSET.test(type!)))
        return done(new Problem('unsupported_media_type', 'Send JSON in UTF-8, without a content-encoding.'));
      if (request.routeOptions.config.rawBody === true) return done(null, body);
      // An empty body counts as none, for routes such as POST …/pause.
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
