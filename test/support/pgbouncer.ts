/** A real PgBouncer in front of a server that needs no password. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chown, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { openDirectory } from '../../scripts/open-directory.ts';
import { ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';
import { readBlocks } from './doc-blocks.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import type { PostgresqlServer } from './postgresql-versions.ts';

/** Debian installs it in /usr/sbin, which is only on root's PATH. */
const PATH = `${process.env.PATH ?? ''}:/usr/sbin`;

/** Null: it is installed. */
export const whyNoPgbouncer: string | null =
  spawnSync('pgbouncer', ['--version'], { env: { PATH } }).status === 0
    ? null
    : 'PgBouncer is not installed: scripts/install-pgbouncer.sh';

export interface Pgbouncer {
  /** The same database, through the pooler. */
  urlOf(directUrl: string): string;
  stop(): Promise<void>;
}

export async function startPgbouncer(
  server: PostgresqlServer,
  { mode, poolSize }: { mode: 'transaction' | 'session' | 'statement'; poolSize: number },
): Promise<Pgbouncer> {
  return startWith(
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 500
query_wait_timeout = 20
`,
    server.url,
  );
}

/** With the settings that docs/operate/poolers.md prints, in front of one database. Only names, addresses and passwords differ. */
export async function startPrintedPgbouncer(databaseUrl: string): Promise<Pgbouncer> {
  const printed = readBlocks('docs/operate/poolers.md').find(({ text }) => text.startsWith('[databases]'))!;
  const { port, pathname } = new URL(databaseUrl);
  return startWith(
    printed.text
      .replaceAll(/^(listen_addr|listen_port|auth_type|auth_file) = .*\n/gm, '')
      .replace(/^posthorn = /m, `${pathname.slice(1)} = `)
      .replace('host=db.internal port=5432', `host=127.0.0.1 port=${port}`),
    databaseUrl,
  );
}

/** Appends what every PgBouncer of a test needs. The settings must end with the section `[pgbouncer]`. */
async function startWith(settings: string, databaseUrl: string): Promise<Pgbouncer> {
  const directory = await openDirectory('posthorn-pgbouncer-');
  const port = await freePort();
  const users = path.join(directory, 'users.txt');
  await writeFile(users, '"posthorn" ""\n');
  const file = path.join(directory, 'pgbouncer.ini');
  await writeFile(
    file,
    `${settings}
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
`,
  );
  const runAs = isRoot() ? await ensureServerUser() : undefined;
  if (runAs !== undefined)
    for (const each of [directory, users, file]) await chown(each, runAs.uid, runAs.gid);
  const child = spawn('pgbouncer', [file], {
    env: { PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...runAs,
  });
  let output = '';
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  const endOnExit = () => child.kill('SIGKILL');
  process.once('exit', endOnExit);
  const ended = once(child, 'close');
  const urlOf = (directUrl: string): string => {
    const url = new URL(directUrl);
    url.port = String(port);
    return url.href;
  };
  await eventually(
    'PgBouncer takes connections',
    async () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended:\n${output}`);
      const client = new pg.Client({ connectionString: urlOf(databaseUrl) });
      client.on('error', () => {});
      return client.connect().then(
        async () => {
          await client.end();
          return true;
        },
        () => false,
      );
    },
    { saw: () => output },
  );
  return {
    urlOf,
    async stop() {
      child.kill('SIGINT');
      const killer = setTimeout(() => child.kill('SIGKILL'), 3000);
      await ended;
      clearTimeout(killer);
      process.off('exit', endOnExit);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
