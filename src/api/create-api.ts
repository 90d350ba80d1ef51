/** The HTTP API: which routes exist, and what each of them needs. */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { archiveRoutes } from './archive/routes.ts';
import { auditRoutes } from './audit/routes.ts';
import { consoleRoutes } from './console/routes.ts';
import { deadLetterGroupRoutes } from './dead-letters/group-routes.ts';
import { deadLetterRoutes } from './dead-letters/routes.ts';
import { batchRoutes } from './deliveries/batch-routes.ts';
import { deliveryRoutes } from './deliveries/routes.ts';
import { sentRequestRoutes } from './deliveries/sent-request-routes.ts';
import type { ApiDependencies } from './dependencies.ts';
import { estimateRoutes } from './endpoints/estimate-routes.ts';
import { previewRoutes } from './endpoints/preview-routes.ts';
import { probeRoutes } from './endpoints/probe-routes.ts';
import { endpointRoutes } from './endpoints/routes.ts';
import { endpointSecretRoutes } from './endpoints/secret-routes.ts';
import { endpointStatsRoutes } from './endpoints/stats-routes.ts';
import { testEventRoutes } from './endpoints/test-routes.ts';
import { schemaCheckRoutes } from './event-types/check-routes.ts';
import { catalogueDocumentRoutes } from './event-types/document-routes.ts';
import { pinRoutes } from './event-types/pin-routes.ts';
import { eventTypeRoutes } from './event-types/routes.ts';
import { eventTypeVersionRoutes } from './event-types/version-routes.ts';
import { expungeRoutes } from './events/expunge-routes.ts';
import { publishRoutes } from './events/publish-routes.ts';
import { eventRoutes } from './events/routes.ts';
import { filterRoutes } from './filters/routes.ts';
import { guideRoutes } from './guide/routes.ts';
import { healthRoutes } from './health/routes.ts';
import { createServer, type HttpServerOptions } from './http/server.ts';
import { prepareV1 } from './http/v1.ts';
import { inboxReceiver } from './inbox/receive.ts';
import { inboxRoutes } from './inbox/routes.ts';
import { keyRoutes } from './keys/routes.ts';
import { metricsRoutes } from './metrics/routes.ts';
import { confirmRoutes } from './notifiers/confirm-routes.ts';
import { notifierRoutes } from './notifiers/routes.ts';
import { openApiRoutes } from './openapi/routes.ts';
import { portalSessionRoutes } from './portal/routes.ts';
import { replayRoutes } from './replay/routes.ts';
import { rootRoutes } from './root/routes.ts';
import { signInRoutes } from './sign-in/routes.ts';
import { sourceRoutes } from './sources/routes.ts';
import { statsRoutes } from './stats/routes.ts';
import { storageRoutes } from './storage/routes.ts';
import { streamRoutes } from './stream/routes.ts';
import { taskRoutes } from './tasks/routes.ts';
import { tenantRoutes } from './tenants/routes.ts';

export interface ApiOptions extends HttpServerOptions {
  /** Only `/healthz`, `/readyz` and `/metrics`: for a worker without the API. */
  readonly healthOnly: boolean;
  /** `/metrics` is served by `createMetricsApi`. */
  readonly metricsElsewhere?: boolean;
}

/** Creates the server with all routes, ready to listen. */
export async function createApi(
  dependencies: ApiDependencies,
  options: ApiOptions,
): Promise<FastifyInstance> {
  const { clock, metrics, access, inboxes } = dependencies;
  const { server, routes } = createServer(dependencies, options);

  await server.register(healthRoutes({ clock, ...dependencies.health }));
  if (options.metricsElsewhere !== true) await server.register(metricsRoutes(metrics, access));
  if (options.healthOnly) return server;
  await server.register(v1Routes(dependencies), { prefix: '/v1' });
  await server.register(openApiRoutes(dependencies, routes));
  await server.register(rootRoutes(dependencies));
  await server.register(consoleRoutes(dependencies.portalOrigins));
  await server.register(signInRoutes(signInContext(dependencies)));
  await server.register(guideRoutes());
  await server.register(confirmRoutes(dependencies.manage.notifiers));
  if (inboxes !== null) await server.register(inboxReceiver(dependencies, inboxes));
  return server;
}

/** Creates a server with `/metrics` only, for an address of its own. */
export async function createMetricsApi(
  dependencies: ApiDependencies,
  options: HttpServerOptions,
): Promise<FastifyInstance> {
  const { server } = createServer(dependencies, options);
  await server.register(metricsRoutes(dependencies.metrics, dependencies.access));
  return server;
}

function signInContext(dependencies: ApiDependencies): Parameters<typeof signInRoutes>[0] {
  const { log, clock, access } = dependencies;
  if (access.signIn == null) return null;
  const { isTrustedProxy } = access;
  // `publicUrl` is read per request: with port 0 it is only known once the server listens.
  return { ...access.signIn, log, clock, isTrustedProxy, publicUrl: () => dependencies.publicUrl };
}

/** The routes that need a key, in the order of the OpenAPI document. */
function v1Routes(dependencies: ApiDependencies): FastifyPluginAsync {
  const { pool, clock, endpoints, manage, metrics, access, publishing, inboxes, unstoredEvents } =
    dependencies;
  const { limits } = publishing;
  return async (v1) => {
    prepareV1(v1, dependencies);
    await v1.register(endpointRoutes(manage.endpoints, { pool, clock, endpoints }));
    await v1.register(endpointSecretRoutes(manage.endpointSecrets));
    await v1.register(filterRoutes(limits, pool));
    await v1.register(estimateRoutes({ pool, clock }));
    await v1.register(endpointStatsRoutes(dependencies));
    await v1.register(statsRoutes(dependencies));
    await v1.register(streamRoutes(dependencies.liveTail, clock, access));
    await v1.register(probeRoutes(manage.probes, { endpoints }));
    await v1.register(previewRoutes(dependencies.conversions, pool, dependencies.catalogue));
    await v1.register(testEventRoutes(manage.testEvents, { endpoints, limits }));
    await v1.register(publishRoutes(publishing, metrics));
    await v1.register(eventRoutes(dependencies));
    await v1.register(deliveryRoutes({ pool, endpoints }));
    await v1.register(sentRequestRoutes(dependencies));
    await v1.register(batchRoutes({ pool }));
    await v1.register(expungeRoutes(manage.expunge, unstoredEvents));
    await v1.register(replayRoutes(manage.replay, endpoints, unstoredEvents));
    await v1.register(deadLetterRoutes(manage, { pool, endpoints }));
    await v1.register(deadLetterGroupRoutes(pool));
    await v1.register(taskRoutes(manage.tasks, pool));
    await v1.register(notifierRoutes(manage.notifiers, { pool, endpoints }));
    await v1.register(keyRoutes(manage.keys, pool, { hasInbox: inboxes !== null }));
    await v1.register(portalSessionRoutes(manage.portalSessions, dependencies));
    await v1.register(tenantRoutes(manage, pool));
    await v1.register(eventTypeRoutes(manage.eventTypes, pool));
    await v1.register(eventTypeVersionRoutes(manage.eventTypeVersions, { pool, clock }));
    await v1.register(pinRoutes(pool, endpoints, dependencies.catalogue));
    await v1.register(schemaCheckRoutes(pool, limits, dependencies.conversions, dependencies.catalogue));
    await v1.register(catalogueDocumentRoutes(pool));
    await v1.register(auditRoutes(pool));
    await v1.register(storageRoutes(dependencies.readStorage, () => clock.now()));
    await v1.register(archiveRoutes(manage.archive));
    await v1.register(sourceRoutes(manage.kafkaRecords, dependencies));
    if (inboxes !== null) await v1.register(inboxRoutes(dependencies, inboxes));
  };
}
