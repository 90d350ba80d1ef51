/** Clusters of an installed PostgreSQL (Debian's place for it), for what needs pg_basebackup, pg_dump or pg_ctl. */
import { existsSync, readdirSync } from 'node:fs';
import { appendFile, chown, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { openDirectory } from '../../scripts/open-directory.ts';
import { runCommand } from '../../src/postgres/embedded/run-command.ts';
import { ensureServerUser, isRoot } from '../../src/postgres/embedded/server-user.ts';

const DEBIAN = '/usr/lib/postgresql';

function findPrograms(): string | null {
  if (!existsSync(DEBIAN)) return null;
  const folders = readdirSync(DEBIAN)
    .filter((name) => Number(name) >= 15)
    .sort((a, b) => Number(b) - Number(a))
    .map((name) => path.join(DEBIAN, name, 'bin'));
  return folders.find((folder) => existsSync(path.join(folder, 'pg_basebackup'))) ?? null;
}

/** The folder of PostgreSQL's programs. Null: none is installed. */
export const PROGRAMS = findPrograms();

/** For `needs`. */
export const missingClusters: string | null =
  PROGRAMS === null
    ? 'PostgreSQL 15 or later with pg_basebackup is not installed (apt install postgresql)'
    : null;

export interface Clusters {
  readonly directory: string;
  /** Runs one of PostgreSQL's programs. Returns what it printed; throws if it failed. */
  run(program: string, ...args: readonly string[]): Promise<string>;
  /** Makes a cluster with a superuser `posthorn` who needs no password, and starts it. */
  create(name: string, port: number, settings?: Readonly<Record<string, string>>): Promise<void>;
  start(name: string, port: number): Promise<void>;
  /** Notes that a command of a test started it, so that `remove` stops it. */
  onStarted(name: string): void;
  stop(name: string, mode: 'fast' | 'immediate'): Promise<void>;
  pathOf(name: string): string;
  /** Stops all clusters and removes their files. */
  remove(): Promise<void>;
}

export const urlOn = (port: number, database = 'posthorn'): string =>
  `postgres://posthorn@127.0.0.1:${port}/${database}`;

export async function openClusters(): Promise<Clusters> {
  const runAs = isRoot() ? await ensureServerUser() : undefined;
  const directory = await openDirectory('posthorn-clusters-');
  if (runAs !== undefined) await chown(directory, runAs.uid, runAs.gid);
  const running = new Set<string>();
  const pathOf = (name: string): string => path.join(directory, name);
  const run = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { ok, output } = await runCommand(path.join(PROGRAMS!, program), args, { runAs });
    if (!ok) throw new Error(`${program} ${args.join(' ')} failed:\n${output}`);
    return output;
  };
  const start = async (name: string, port: number): Promise<void> => {
    const log = `${pathOf(name)}.log`;
    const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory}`;
    await run('pg_ctl', '-D', pathOf(name), '-l', log, '-w', '-o', options, 'start');
    running.add(name);
  };
  const stop = async (name: string, mode: 'fast' | 'immediate'): Promise<void> => {
    running.delete(name);
    await run('pg_ctl', '-D', pathOf(name), '-w', '-m', mode, 'stop');
  };
  return {
    directory,
    run,
    start,
    stop,
    onStarted: (name) => void running.add(name),
    pathOf,
    async create(name, port, settings = {}) {
      await mkdir(pathOf(name), { mode: 0o700 });
      if (runAs !== undefined) await chown(pathOf(name), runAs.uid, runAs.gid);
      await run(
        'initdb',
        '-D',
        pathOf(name),
        '-U',
        'posthorn',
        '--auth=trust',
        '--encoding=UTF8',
        '--locale=C',
      );
      const lines = Object.entries(settings).map(([key, value]) => `${key} = '${value}'\n`);
      await appendFile(path.join(pathOf(name), 'postgresql.conf'), lines.join(''));
      await start(name, port);
      await run('createdb', `--maintenance-db=${urlOn(port, 'postgres')}`, 'posthorn');
    },
    async remove() {
      for (const name of running) await stop(name, 'immediate');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
