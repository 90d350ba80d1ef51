/** Wires the relay: a process of its own that reads another database and writes into Posthorn's. See docs/relay.md. */
import { type Config, ConfigError, maskUrl } from './config/index.ts';
import { isReservedHeader } from './deliver/index.ts';
import { WakeSender } from './dispatch/index.ts';
import { DatabaseClock, systemClock } from './domain/clock.ts';
import { Acceptor, readEventWithId } from './ingest/index.ts';
import { checkSource, initStatements, PosthornSink, Relay, RelayError, runInit } from './outbox/index.ts';
import { openDatabase, type Pool } from './postgres/database.ts';
import { createEndpointCache } from './postgres/endpoint-cache.ts';
import { ensurePartitions } from './postgres/partitions.ts';
import { checkRoute } from './postgres/pooler.ts';
import type { OutboxNames } from './postgres/queries/outbox-table.ts';
import { databaseNow, isRelaySchemaThere } from './postgres/queries/relay-sources.ts';
import type { SecretBox } from './postgres/secret-box.ts';
import { addressOf, openSourcePool } from './postgres/source-database.ts';
import type { Log } from './telemetry/log.ts';
import { recurringProblems } from './telemetry/recurring-problems.ts';

export interface RunningRelay {
  readonly name: string;
  stop(): Promise<void>;
}

/** How long a batch waits for Posthorn's database before its rows are given back to the source. */
const ACCEPT_PATIENCE_MS = 10_000;
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
    const facts = await checkSource(source, shownUrl, names, config.relayMode);
    const pool = database.pool('api');
    const clock = new DatabaseClock(systemClock);
    await checkPosthorn(pool, maskUrl(databaseUrl));
    clock.heard(await databaseNow(pool));
    const endpoints = createEndpointCache(pool, NO_SECRETS, () => {});
    await endpoints.refresh();
    const wakeSender = new WakeSender(database.pool('notify'), (error) => problem('wake the workers', error));
    const acceptor = new Acceptor({
      pool: database.pool('ingest'),
      endpoints,
      clock,
      random: Math.random,
      batchRows: config.ingestBatchRows,
      batchBytes: config.ingestBatchBytes,
      queueEvents: config.acceptQueueEvents,
      queueBytes: config.acceptQueueBytes,
      idempotencyTtlMs: config.idempotencyTtlMs,
      tenantPerSecond: config.tenantIngestPerSecond,
      tenantBurst: config.tenantIngestBurst,
      patienceMs: ACCEPT_PATIENCE_MS,
      // Not complete: a relay that was killed had stored them, and may not have told anybody.
      committed: (deliveries, complete) => {
        for (const { delivery } of deliveries)
          wakeSender.wake(delivery.endpointId, complete ? 'recent' : 'sweep');
      },
      missingPartition: async (oldestMs) => {
        await ensurePartitions(database.pool('upkeep'), { days: config.partitionDays, oldestMs });
      },
    });
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
        accept: (events) => acceptor.acceptPromised(events),
        told: async () => {
          await wakeSender.idle();
        },
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
        await wakeSender.idle();
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
