/** Wires the relay: a process of its own that reads another database and writes into Posthorn's. See docs/relay.md. */
import { type Config, ConfigError, maskUrl } from './config/index.ts';
import { createIngest } from './create-ingest.ts';
import { isReservedHeader } from './deliver/index.ts';
import { DatabaseClock, systemClock } from './domain/clock.ts';
import { readEventWithId } from './ingest/index.ts';
import { checkSource, initStatements, PosthornSink, Relay, RelayError, runInit } from './outbox/index.ts';
import { createPostgresAcceptLog } from './postgres/accept-log.ts';
import { openDatabase, type Pool } from './postgres/database.ts';
import { createEndpointCache } from './postgres/endpoint-cache.ts';
import { PostgresNotifier } from './postgres/notifier.ts';
import { ensurePartitions } from './postgres/partitions.ts';
import type { OutboxNames } from './postgres/queries/outbox-table.ts';
import { databaseNow, isRelaySchemaThere } from './postgres/queries/relay-sources.ts';
import type { SecretBox } from './postgres/secret-box.ts';
import { addressOf, openSourcePool } from './postgres/source-database.ts';
import { createPostgresTenantLimits } from './postgres/tenant-limits.ts';
import type { Log } from './telemetry/log.ts';
import { recurringProblems } from './telemetry/recurring-problems.ts';

export interface RunningRelay {
  readonly name: string;
  stop(): Promise<void>;
}

const CLOCK_CHECK_MS = 60_000;

export async function startRelay({
  config,
  log,
  failed,
}: {
  config: Config;
  log: Log;
  /** It cannot go on, and trying again will not help. */
  failed: (error: unknown) => void;
}): Promise<RunningRelay> {
  const { from, names, name, shownUrl } = sourceOf(config);
  const { databaseUrl } = config;
  if (databaseUrl === null) {
    throw new ConfigError([
      {
        name: 'DATABASE_URL',
        message: 'DATABASE_URL is not set: where is the Posthorn that takes the events?',
      },
    ]);
  }
  const problem = recurringProblems(log, systemClock);
  const source = openSourcePool({
    connectionString: from,
    onIdleError: (error) => log.debug({ err: error }, 'lost an idle connection to the source'),
  });
  const database = openDatabase({
    connectionString: databaseUrl,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: (purpose, error) => log.debug({ err: error, purpose }, 'lost an idle database connection'),
  });
  const close = async (): Promise<void> => {
    await Promise.all([source.end(), database.close()]);
  };
  try {
    const facts = await checkSource(source, shownUrl, names, config.relayMode);
    const pool = database.pool('api');
    const clock = new DatabaseClock(systemClock);
    await checkPosthorn(pool, maskUrl(databaseUrl));
    clock.heard(await databaseNow(pool));
    const endpoints = createEndpointCache(pool, NO_SECRETS, () => {});
    await endpoints.refresh();
    const notifier = new PostgresNotifier({ database, clock, onProblem: problem });
    const ingest = createIngest(
      {
        acceptLog: createPostgresAcceptLog({
          database,
          ensurePartitions: async (oldestMs) => {
            await ensurePartitions(pool, { days: config.partitionDays, oldestMs });
          },
        }),
        endpoints,
        tenantLimits: createPostgresTenantLimits(database),
        clock,
        random: Math.random,
      },
      {
        router: {
          routeCommitted: (deliveries, commit) => {
            // Without a commit: a relay that was killed stored the deliveries, and may not have notified their owner.
            const scope = commit === null ? 'sweep' : 'recent';
            const endpointIds = deliveries.map(({ delivery }) => delivery.endpointId);
            notifier.publish('wake', [{ endpointIds, scope }]);
          },
        },
      },
      config,
    );
    const limits = { maxEventBytes: config.maxEventBytes, maxNesting: config.maxNesting };
    const context = { keyTenant: null, idempotencyKey: null, isReservedHeader };
    const relay = new Relay({
      name,
      mode: config.relayMode,
      sourceUrl: from,
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
        read: (body) => readEventWithId(body, limits, context),
        accept: (events) => ingest.committedEvents.accept(events),
        told: () => notifier.flush(),
      }),
      keep: config.relayKeep,
      batchRows: config.ingestBatchRows,
      batchBytes: config.ingestBatchBytes,
      maxEventBytes: config.maxEventBytes,
      pollMs: config.relayPollMs,
      reportMs: config.relayReportMs,
      maxRetainedBytes: config.relayMaxWalBytes,
      failed,
    });
    await relay.start();
    const clockTimer = setInterval(() => {
      void databaseNow(pool).then(
        (now) => clock.heard(now),
        () => {},
      );
    }, CLOCK_CHECK_MS);
    clockTimer.unref();
    return {
      name,
      async stop() {
        clearInterval(clockTimer);
        await relay.stop();
        await notifier.flush();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function checkPosthorn(pool: Pool, shownUrl: string): Promise<void> {
  if (await isRelaySchemaThere(pool)) return;
  throw new RelayError(
    `The database of Posthorn (${shownUrl}) has no schema for a relay: it is older than this version, or another database.`,
    'Run `posthorn migrate`, or start the servers of this version, and check DATABASE_URL.',
    { final: true },
  );
}

/** Makes what the relay needs in the source. Returns the address, for people. */
export async function initRelay(config: Config): Promise<string> {
  const { from, names, shownUrl } = sourceOf(config);
  const source = openSourcePool({ connectionString: from, onIdleError: () => {} });
  try {
    await runInit(source, shownUrl, names, config.relayMode);
    await checkSource(source, shownUrl, names, config.relayMode);
    return shownUrl;
  } finally {
    await source.end();
  }
}

export function initSql(config: Config): string {
  const { names } = sourceOf(config);
  return initStatements(names, config.relayMode)
    .map((statement) => `${statement};`)
    .join('\n\n');
}

function sourceOf(config: Config): { from: string; names: OutboxNames; name: string; shownUrl: string } {
  const from = config.relayFrom;
  if (from === null) {
    throw new ConfigError([
      { name: '--from', message: '--from (POSTHORN_RELAY_FROM) is not set: which database has the events?' },
    ]);
  }
  const { host, port, database } = addressOf(from);
  return {
    from,
    shownUrl: maskUrl(from),
    name: config.relayName ?? `${host}:${port}/${database}`,
    names: {
      table: config.relayTable,
      publication: config.relayPublication,
      slot:
        config.relaySlot ?? `posthorn_${database.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}`.slice(0, 63),
    },
  };
}

/** The relay decides who gets an event, and calls nobody: it has no encryption key, and opens nothing. */
const NO_SECRETS: SecretBox = {
  keyId: 'none',
  knows: () => true,
  seal: () => {
    throw new Error('A relay seals nothing.');
  },
  open: () => '{}',
};
