/** Composes the relay, a process of its own that moves events from another database to Posthorn. See docs/relay.md. */

import { EventCatalogue } from '../catalogue/event-catalogue.ts';
import { type Config, ConfigError, maskUrl } from '../config/index.ts';
import { createIngest } from '../create-ingest.ts';
import { isReservedHeader } from '../deliver/index.ts';
import { DatabaseClock, systemClock } from '../domain/clock.ts';
import { readEventWithId } from '../ingest/index.ts';
import type { EventStore } from '../ports/event-store.ts';
import { createPostgresCatalogueStore } from '../postgres/catalogue-store.ts';
import { type Database, openDatabase, type Pool } from '../postgres/database.ts';
import { createEndpointCache } from '../postgres/endpoint-cache.ts';
import { createPostgresEventLookup, createPostgresEventStore } from '../postgres/event-store.ts';
import { createPostgresFanOutStore } from '../postgres/fan-out-store.ts';
import { PostgresNotifier } from '../postgres/notifier.ts';
import { ensurePartitions } from '../postgres/partitions.ts';
import { checkRoute } from '../postgres/pooler.ts';
import { hasRelaySchema } from '../postgres/queries/relay-sources.ts';
import type { SecretBox } from '../postgres/secret-box.ts';
import { openSourcePool } from '../postgres/source-database.ts';
import { createPostgresTenantLimits } from '../postgres/tenant-limits.ts';
import { clockJumpLogger } from '../telemetry/clock-jumps.ts';
import type { Log } from '../telemetry/log.ts';
import { recurringProblems } from '../telemetry/recurring-problems.ts';
import { checkSource } from './check-source.ts';
import { PosthornSink } from './posthorn-sink.ts';
import { Relay } from './relay.ts';
import { RelayError } from './relay-error.ts';
import { type SourceSettings, sourceOf } from './source-settings.ts';

export interface RunningRelay {
  readonly name: string;
  stop(): Promise<void>;
}

export interface StartRelayOptions {
  readonly config: Config;
  readonly log: Log;
  /** Called if the relay cannot continue and trying again cannot help. */
  readonly onFailed: (error: unknown) => void;
}

const CATALOGUE_REFRESH_MS = 2_000;
const CLOCK_CHECK_MS = 60_000;

export async function startRelay(options: StartRelayOptions): Promise<RunningRelay> {
  const { config, log } = options;
  const settings = sourceOf(config);
  const { databaseUrl } = config;
  if (databaseUrl === null) {
    throw new ConfigError([
      {
        name: 'DATABASE_URL',
        message: 'DATABASE_URL is not set: set it to the database of the Posthorn that takes the events',
      },
    ]);
  }
  const source = openSourcePool({
    connectionString: settings.url,
    onIdleError: (error) => log.debug({ err: error }, 'lost an idle connection to the source'),
  });
  const database = openDatabase({
    connectionString: databaseUrl,
    directConnectionString: config.directDatabaseUrl,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: (purpose, error) => log.debug({ err: error, purpose }, 'lost an idle database connection'),
  });
  const close = async (): Promise<void> => {
    await Promise.all([source.end(), database.close()]);
  };
  try {
    await checkRoute({ databaseUrl, directDatabaseUrl: config.directDatabaseUrl });
    const stopRelay = await startMoving(source, database, settings, { ...options, databaseUrl });
    return {
      name: settings.name,
      async stop() {
        await stopRelay();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Returns a function that stops the relay. */
async function startMoving(
  source: Pool,
  database: Database,
  { url, shownUrl, name, names }: SourceSettings,
  { config, log, onFailed, databaseUrl }: StartRelayOptions & { readonly databaseUrl: string },
): Promise<() => Promise<void>> {
  const facts = await checkSource(source, shownUrl, names, config.relayMode);
  const pool = database.pool('api');
  await checkPosthorn(pool, maskUrl(databaseUrl));
  const accepting = await createAccepting(database, config, log);
  const { clock, notifier, committedEvents } = accepting;
  const context = { keyTenant: null, idempotencyKey: null, isReservedHeader, acceptsAnyKey: true } as const;
  const relay = new Relay({
    name,
    mode: config.relayMode,
    sourceUrl: url,
    source,
    pool,
    log,
    clock,
    facts,
    ...names,
    sink: new PosthornSink({
      source: name,
      pool,
      log,
      read: (body) => readEventWithId(body, config, context),
      accept: (events) => committedEvents.accept(events),
      waitUntilNotified: () => notifier.flush(),
    }),
    keep: config.relayKeep,
    batchRows: config.ingestBatchRows,
    batchBytes: config.ingestBatchBytes,
    maxEventBytes: config.maxEventBytes,
    pollMs: config.relayPollMs,
    reportMs: config.relayReportMs,
    maxRetainedBytes: config.relayMaxWalBytes,
    onFailed,
  });
  await relay.start();
  const stopClock = keepClockCorrect(clock, accepting.eventStore);
  const stopCatalogue = keepFresh(accepting.catalogue);
  return async () => {
    stopClock();
    stopCatalogue();
    await relay.stop();
    await notifier.flush();
  };
}

/** Composes the accept stage of the relay. It stores events like a server, and notifies the workers of their deliveries. */
async function createAccepting(database: Database, config: StartRelayOptions['config'], log: Log) {
  const eventStore = createPostgresEventStore({
    database,
    ensurePartitions: async (idTimes) => {
      await ensurePartitions(database.pool('upkeep'), { days: config.partitionDays, ...idTimes });
    },
  });
  const clock = new DatabaseClock(systemClock, clockJumpLogger(log));
  clock.correct(await eventStore.now());
  const endpoints = createEndpointCache(database.pool('api'), NO_SECRETS, () => {});
  await endpoints.refresh();
  const onProblem = recurringProblems(log, systemClock);
  const catalogueStore = createPostgresCatalogueStore(database);
  const catalogue = new EventCatalogue({ store: catalogueStore, onProblem });
  await catalogue.refresh();
  const notifier = new PostgresNotifier({ database, clock, onProblem });
  // The servers write the slices of large fan-outs: `fanOutWriter` is not started here.
  const { committedEvents } = createIngest(
    {
      eventStore,
      eventLookup: createPostgresEventLookup(database),
      fanOuts: createPostgresFanOutStore(database),
      endpoints,
      tenantLimits: createPostgresTenantLimits(database),
      catalogue,
      catalogueStore,
      clock,
      random: Math.random,
    },
    {
      onProblem,
      router: {
        routeCommitted: (deliveries, commit) => {
          // No commit: an earlier try stored the deliveries, and may not have notified their owner.
          const scope = commit === null ? 'sweep' : 'recent';
          const endpointIds = deliveries.map(({ delivery }) => delivery.endpointId);
          notifier.publish('wake', [{ endpointIds, scope }]);
        },
      },
    },
    config,
  );
  return { eventStore, clock, catalogue, notifier, committedEvents };
}

function keepClockCorrect(clock: DatabaseClock, eventStore: Pick<EventStore, 'now'>): () => void {
  const timer = setInterval(() => {
    void eventStore.now().then(
      (now) => clock.correct(now),
      () => {},
    );
  }, CLOCK_CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function keepFresh(catalogue: EventCatalogue): () => void {
  const timer = setInterval(() => void catalogue.refresh().catch(() => {}), CATALOGUE_REFRESH_MS);
  timer.unref();
  return () => clearInterval(timer);
}

async function checkPosthorn(pool: Pool, shownUrl: string): Promise<void> {
  if (await hasRelaySchema(pool)) return;
  throw new RelayError(
    `The database of Posthorn (${shownUrl}) has no schema for a relay: it is older than this version, or it is another database.`,
    'Run `posthorn migrate` or start the servers of this version, and check DATABASE_URL.',
    { final: true },
  );
}

/** The relay matches endpoints but sends nothing to them, so it needs no encryption key and opens no secrets. */
const NO_SECRETS: SecretBox = {
  keyId: 'none',
  knows: () => true,
  seal: () => {
    throw new Error('A relay cannot encrypt secrets.');
  },
  open: () => '{}',
};
