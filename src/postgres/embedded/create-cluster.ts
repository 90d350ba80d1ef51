import { randomBytes } from 'node:crypto';
import { appendFile, chown, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Binaries } from './binaries.ts';
import { explainServerFailure } from './explain-failure.ts';
import { type Home, UNFINISHED_PREFIX } from './home.ts';
import { flushToDisk, writeDurably } from './own-files.ts';
import { type RunAs, runCommand } from './run-command.ts';
import { SETTINGS_FILE } from './server-settings.ts';

export const DATABASE = 'posthorn';
export const USER = 'posthorn';

/**
 * Creates a cluster with the database under a temporary name, and renames it into place when all of it is on disk. If
 * the process is killed before that, the next start begins again. inspect-cluster.ts relies on the order of the last
 * steps.
 */
export async function createCluster(home: Home, binaries: Binaries, runAs: RunAs): Promise<void> {
  const unfinished = path.join(home.dir, `${UNFINISHED_PREFIX}${randomBytes(6).toString('hex')}`);
  const cluster = path.join(unfinished, 'cluster');
  const password = randomBytes(24).toString('base64url'); // 192 bits
  try {
    await mkdir(unfinished, { mode: 0o700 });
    const passwordForInitdb = path.join(unfinished, 'password');
    await writeFile(passwordForInitdb, `${password}\n`, { mode: 0o600 });
    if (runAs) {
      await chown(passwordForInitdb, runAs.uid, runAs.gid);
      await chown(unfinished, runAs.uid, runAs.gid);
    }
    const run = async (what: string, program: string, args: string[], input?: string) => {
      const result = await runCommand(program, args, { runAs, ...(input && { input }) });
      if (!result.ok)
        throw await explainServerFailure(`${what} failed`, result.output, { dir: home.dir, isNew: true });
    };
    await run('Creating the database (initdb)', binaries.initdb, [
      `--pgdata=${cluster}`,
      `--username=${USER}`,
      `--pwfile=${passwordForInitdb}`,
      '--auth=scram-sha-256', // for every kind of connection, the local socket too
      '--encoding=UTF8',
      // PostgreSQL's own C.UTF-8: the same on every machine, and no upgrade of the C library can change the order in an index.
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-sync', // synced once, below
    ]);
    await appendFile(
      path.join(cluster, 'postgresql.conf'),
      `\n# Posthorn's own settings. Settings below this line override them.\ninclude_if_exists = '${SETTINGS_FILE}'\n`,
    );
    // The single-user server takes 90 ms, and the database exists before the cluster is renamed into place.
    await run(
      'Creating the database',
      binaries.postgres,
      ['--single', '-D', cluster, '-c', 'exit_on_error=on', 'template1'],
      `create database ${DATABASE}\n`,
    );
    await run('Writing the database to disk', binaries.initdb, ['--sync-only', `--pgdata=${cluster}`]);
    await flushToDisk(unfinished);
    await writeDurably(home.password, `${password}\n`);
    await rename(cluster, home.cluster);
    await flushToDisk(home.dir);
  } catch (error) {
    // Delete the password first: a password without a cluster or an unfinished one means that a database was lost.
    await rm(home.password, { force: true }).catch(() => {});
    await rm(unfinished, { recursive: true, force: true }).catch(() => {});
    throw error;
  }
  await rm(unfinished, { recursive: true, force: true });
}
