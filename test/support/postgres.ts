/**
 * One PostgreSQL for the whole test run, with a template database that is migrated once. Test files clone it (see
 * database.ts) in 30 ms instead of migrating.
 */
import { rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { openDirectory } from '../../scripts/open-directory.ts';
import { startEmbeddedPostgres } from '../../src/postgres/embedded/index.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ensurePartitions } from '../../src/postgres/partitions.ts';
import { databaseUrl, TEMPLATE } from './database.ts';
import { onceForAllProjects } from './once-for-all-projects.ts';
import { SUPPORTED, startPostgresql } from './postgresql-versions.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    /** Directory of Node's compile cache, which halves the start time of each Posthorn. */
    compileCache: string;
  }
}

export default async function providePostgres(project: TestProject): Promise<() => Promise<void>> {
  const { value, release } = await onceForAllProjects('postgres', startPostgres);
  project.provide('postgresUrl', value.url);
  project.provide('compileCache', value.compileCache);
  return release;
}

async function startPostgres(): Promise<{
  value: { url: string; compileCache: string };
  end(): Promise<void>;
}> {
  const directory = await temporaryDirectory('posthorn-e2e-');
  const server = await startServer(path.join(directory, 'data'));
  const end = async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await makeTemplate(server.connectionString);
  } catch (error) {
    await end();
    throw error;
  }
  return { value: { url: server.connectionString, compileCache: path.join(directory, 'compiled') }, end };
}

/** Starts the embedded server, or with `POSTHORN_TEST_POSTGRESQL=15` another supported version. */
async function startServer(dataDir: string): Promise<{ connectionString: string; stop(): Promise<void> }> {
  // Every test file runs at least one Posthorn with its own pools.
  const settings = { max_connections: '400', shared_buffers: '128MB' };
  const major = SUPPORTED.find((each) => String(each) === process.env.POSTHORN_TEST_POSTGRESQL);
  if (major === undefined) return startEmbeddedPostgres({ dataDir, settings });
  const { url, stop } = await startPostgresql(major, settings);
  return { connectionString: url, stop };
}

async function makeTemplate(serverUrl: string): Promise<void> {
  const server = new pg.Client({ connectionString: serverUrl });
  await server.connect();
  await server.query(`create database ${TEMPLATE}`);
  await server.end();
  const pool = new pg.Pool({ connectionString: databaseUrl(serverUrl, TEMPLATE), max: 1 });
  pool.on('error', () => {});
  await migrate(pool);
  await ensurePartitions(pool, { days: 7 });
  await pool.end();
}

/** Uses memory if there is space: a new cluster has 1,300 files. */
export async function temporaryDirectory(name: string): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined);
  const hasRoom = memory !== undefined && memory.bavail * memory.bsize > 2 ** 30;
  return openDirectory(name, hasRoom ? '/dev/shm' : undefined);
}
