/** Servers of every supported PostgreSQL version. scripts/fetch-postgresql.sh fetches 15 to 17. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDirectory } from '../../scripts/open-directory.ts';
import { findBinaries } from '../../src/postgres/embedded/binaries.ts';
import { copyWhereReachable } from '../../src/postgres/embedded/copy-binaries.ts';
import { type RunAs, runCommand, serverEnvironment } from '../../src/postgres/embedded/run-command.ts';
import { canEnter, ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';
import { freePort } from './free-port.ts';

export const SUPPORTED = [15, 16, 17, 18] as const;
export type Major = (typeof SUPPORTED)[number];

const SYSTEM_DIRECTORY = '/var/lib/posthorn';
const nativeOf = (major: Major): string =>
  fileURLToPath(new URL(`../../node_modules/.cache/postgresql/${major}/native`, import.meta.url));

/** Returns null if the programs of this version are available. */
export const whyMissing = (major: Major): string | null =>
  major === 18 || existsSync(path.join(nativeOf(major), 'bin/postgres'))
    ? null
    : `PostgreSQL ${major} has not been fetched: scripts/fetch-postgresql.sh`;

export interface PostgresqlServer {
  readonly version: Major;
  /** Connects as a superuser over TCP, without a password. */
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

async function programs(major: Major, runAs: RunAs): Promise<string> {
  if (major === 18) {
    const { postgres } = await findBinaries(runAs, SYSTEM_DIRECTORY, () => {});
    return path.dirname(postgres);
  }
  const native = nativeOf(major);
  const runs = async (directory: string) =>
    (await runCommand(path.join(directory, 'bin/postgres'), ['--version'], { runAs })).ok;
  if (runAs === undefined || (await canEnter(runAs, native))) return path.join(native, 'bin');
  const copy = await copyWhereReachable({ native, label: `test-${major}` }, SYSTEM_DIRECTORY, runs);
  return path.join(copy.native, 'bin');
}

/** A new, empty cluster of this version. The caller stops it. */
export async function startPostgresql(
  major: Major,
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresqlServer> {
  const runAs = isRoot() ? await ensureServerUser() : undefined;
  const bin = await programs(major, runAs);
  const directory = await openDirectory(`posthorn-postgresql-${major}-`);
  if (runAs !== undefined) await chown(directory, runAs.uid, runAs.gid);
  const cluster = path.join(directory, 'data');
  const made = await runCommand(
    path.join(bin, 'initdb'),
    [`--pgdata=${cluster}`, '--username=posthorn', '--auth=trust', '--encoding=UTF8', '--locale=C', '-N'],
    { runAs },
  );
  if (!made.ok) throw new Error(`initdb of PostgreSQL ${major} failed:\n${made.output}`);
  const port = await freePort();
  const all: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    wal_level: 'logical',
    max_connections: '300',
    // As docs/operate/postgresql-versions.md recommends and as the embedded server is set.
    random_page_cost: '1.1',
    jit: 'off',
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(path.join(bin, 'postgres'), ['-D', cluster, ...args], {
    cwd: '/',
    env: serverEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
    ...runAs,
  });
  let output = '';
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const endOnExit = () => child.kill('SIGQUIT');
  process.once('exit', endOnExit);
  const ended = once(child, 'close');
  const url = `postgres://posthorn@127.0.0.1:${port}/postgres`;
  const stop = async (): Promise<void> => {
    child.kill('SIGINT');
    await ended;
    process.off('exit', endOnExit);
    await rm(directory, { recursive: true, force: true });
  };
  while (!(await canConnect(url))) {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ${major} did not start:\n${output}`);
  }
  return { version: major, url, port, stop };
}

async function canConnect(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  }
}
