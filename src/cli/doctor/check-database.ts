/** The checks of the database, on one connection. */
import pg from 'pg';
import { type Config, retentionOf } from '../../config/index.ts';
import { reportStorage } from '../../manage/storage.ts';
import { type Client, connectionsPerProcess, DISPATCH_CONNECTIONS } from '../../postgres/database.ts';
import { readMigrations } from '../../postgres/migrate.ts';
import {
  checkRoute,
  type DatabaseRoute,
  DirectConnectionError,
  detectPooling,
} from '../../postgres/pooler.ts';
import { readArchiveStatus } from '../../postgres/queries/archive.ts';
import { checkSession } from '../../postgres/queries/check-session.ts';
import {
  ownsSchema,
  readAppliedMigrations,
  readMissingGrants,
  readPartitions,
  readServer,
  readWorkers,
  sampleSecrets,
  sampleUrls,
} from '../../postgres/queries/inspect.ts';
import { listRegions } from '../../postgres/queries/regions.ts';
import { rolesOfChildren } from '../child-roles.ts';
import { explainError } from '../explain-error.ts';
import { type Finding, problem } from './finding.ts';
import { judgeArchive } from './judge-archive.ts';
import { judgeSecrets, type Keys } from './judge-keys.ts';
import {
  judgeClock,
  judgeConnections,
  judgeDurability,
  judgeGrants,
  judgeMigrations,
  judgePartitions,
  judgePooling,
  judgeRegions,
  judgeSession,
  judgeSource,
  judgeStandby,
  judgeVacuum,
  judgeVersion,
  judgeWorkers,
} from './judge-server.ts';
import { judgeStorage } from './judge-storage.ts';

const TIMEOUT_MS = 10_000;

export interface DatabaseReport {
  readonly findings: Finding[];
  /** URLs of some endpoints, for the DNS check. */
  readonly urls: string[];
}

export interface CheckedDatabase {
  readonly url: string;
  /** Whether workers should be running now. */
  readonly shouldRun: boolean;
}

export async function checkDatabase(
  config: Config,
  keys: Keys,
  { url, shouldRun }: CheckedDatabase,
): Promise<DatabaseReport> {
  const { directDatabaseUrl } = config;
  const directUrl = directDatabaseUrl ?? url;
  try {
    return await withClient(directUrl, async (client) => {
      const route = { databaseUrl: url, directDatabaseUrl: config.directDatabaseUrl };
      return runChecks(client, config, keys, { shouldRun, pooler: await checkPooler(route) });
    });
  } catch (error) {
    return {
      findings: [
        unreachable(
          'Database',
          directDatabaseUrl === null ? error : new DirectConnectionError(directUrl, error),
          directUrl,
        ),
      ],
      urls: [],
    };
  }
}

async function checkPooler(route: DatabaseRoute): Promise<Finding> {
  try {
    await checkRoute(route);
    return judgePooling(await detectPooling(route.databaseUrl), route.directDatabaseUrl !== null);
  } catch (error) {
    return unreachable('Pooler', error, route.databaseUrl);
  }
}

/** Returns null if no relay is configured. */
export async function checkSource({ relayFrom, relayMode }: Config): Promise<Finding | null> {
  if (relayFrom === null) return null;
  try {
    return await withClient(relayFrom, async (client) => judgeSource(await readServer(client), relayMode));
  } catch (error) {
    return unreachable('Relay source', error, relayFrom);
  }
}

async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'posthorn doctor',
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  }) as unknown as Client;
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

function unreachable(check: string, error: unknown, databaseUrl: string): Finding {
  const explained = explainError(error, { databaseUrl })?.message ?? String(error);
  const [detail = '', ...todo] = explained.split('\n');
  return problem(check, detail, todo.join(' ') || 'Look at the log of PostgreSQL.');
}

/** The most connections to PostgreSQL itself that all processes of this node open. */
export function countConnections(
  config: Pick<Config, 'role' | 'processes' | 'databasePoolSize' | 'directDatabaseUrl'>,
): number {
  const { role, processes, databasePoolSize, directDatabaseUrl } = config;
  const roles = processes === 1 ? [role] : rolesOfChildren(role, processes);
  return roles.reduce((sum, each) => {
    const { all, direct } = connectionsPerProcess({
      role: each,
      apiConnections: databasePoolSize,
      dispatchConnections: DISPATCH_CONNECTIONS,
    });
    return sum + (directDatabaseUrl === null ? all : direct);
  }, 0);
}

async function runChecks(
  client: Client,
  config: Config,
  keys: Keys,
  { shouldRun, pooler }: { shouldRun: boolean; pooler: Finding },
): Promise<DatabaseReport> {
  const askedAt = Date.now();
  const server = await readServer(client);
  const halfWayMs = (Date.now() - askedAt) / 2;
  const findings = [
    judgeVersion(server),
    judgeDurability(server),
    judgeStandby(server),
    judgeVacuum(server),
    judgeConnections(server, {
      processes: config.processes,
      connections: countConnections(config),
    }),
    judgeClock(Date.now() - halfWayMs - server.now),
    pooler,
  ];
  // A standby cannot LISTEN, and the first finding says that it is one.
  if (server.isStandby) return { findings, urls: [] };
  // Behind a pooler, the locks that this check takes would stay on a connection that other clients use.
  if (pooler.state !== 'problem') findings.push(judgeSession(await checkSession(client)));
  const known = (await readMigrations()).map(({ name }) => name);
  const applied = await readAppliedMigrations(client);
  if (applied !== null) findings.push(judgeGrants(await readMissingGrants(client)));
  if (applied === 'forbidden') return { findings, urls: [] };
  findings.push(judgeMigrations(applied, known, await ownsSchema(client)));
  if (findings.some(({ check, state }) => check === 'Grants' && state === 'problem'))
    return { findings, urls: [] };
  // The other checks need objects that an older schema may lack.
  if (applied === null || applied.length < known.length) return { findings, urls: [] };
  const storageOptions = {
    clock: { now: () => server.now },
    days: retentionOf(config),
    partitionDays: config.partitionDays,
  };
  findings.push(
    judgePartitions(await readPartitions(client)),
    judgeWorkers(await readWorkers(client), { deadAfterMs: config.deadAfterMs, shouldRun }),
    judgeRegions(await listRegions(client, config.deadAfterMs), shouldRun),
    judgeSecrets(keys, await sampleSecrets(client)),
    judgeArchive(await readArchiveStatus(client), config.archiveUrl),
    judgeStorage(await reportStorage(client, storageOptions), Date.now()),
  );
  return { findings, urls: await sampleUrls(client, 50) };
}
