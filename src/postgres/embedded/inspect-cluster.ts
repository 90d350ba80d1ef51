import { chmod, lstat, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError } from './errors.ts';
import { exists, type Home } from './home.ts';
import { clearUnfinished, findUnfinished } from './unfinished-cluster.ts';

const START_EMPTY = 'to begin with an empty database, move the directory away';

/**
 * Finds out whether there is a database. If it is absent, the caller creates one, so `absent` requires that there is
 * neither a cluster nor a password, which shows that there was a cluster. Everything else is an error: Posthorn never
 * silently starts with an empty database.
 *
 *   cluster   password   unfinished   →
 *   no        –          yes             a first start was interrupted: delete its files, begin again
 *   no        no         no              new
 *   no        yes        no              damaged: there was one (a disk that is not mounted?)
 *   yes       no         –               damaged: nobody can log in
 *   yes       yes        –               use it, after a check of the files that every cluster has
 */
export async function inspectCluster(home: Home, major: string): Promise<'absent' | 'present'> {
  const unfinished = await findUnfinished(home);
  const present = await exists(home.cluster);
  const hasPassword = await exists(home.password);
  if (!present && hasPassword && unfinished.length === 0) {
    throw damaged(
      `The database of ${home.dir} is gone: its password file is there, but ${home.cluster} is not.`,
      `Bring it back (is a disk not mounted?); or delete ${home.password} to begin with an empty database.`,
    );
  }
  for (const directory of unfinished) await clearUnfinished(directory);
  if (!present) return 'absent';
  await checkCluster(home.cluster, major);
  if (!hasPassword) {
    throw damaged(
      `The password file ${home.password} of the database in ${home.cluster} is missing.`,
      `Bring it back from a backup; ${START_EMPTY}.`,
    );
  }
  return 'present';
}

async function checkCluster(cluster: string, major: string): Promise<void> {
  const kind = await stat(cluster).catch(() => undefined);
  if (!kind?.isDirectory()) {
    throw damaged(
      `${cluster} is not a directory.`,
      `It has to be a PostgreSQL data directory; ${START_EMPTY}.`,
    );
  }
  const hint = `Posthorn does not touch it. Restore it from a backup; ${START_EMPTY}.`;
  const version = await readFile(path.join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined);
  if (version === undefined) {
    throw damaged(
      `${cluster} exists, but is not a complete PostgreSQL database: PG_VERSION is missing.`,
      hint,
    );
  }
  if (version.trim() !== major) {
    throw damaged(
      `The database in ${cluster} was made by PostgreSQL "${version.trim().slice(0, 20)}", and this is PostgreSQL ${major}.`,
      `Dump it with the Posthorn that made it (pg_dump), and restore the dump into a new data directory.`,
    );
  }
  for (const part of ['global/pg_control', 'base', 'pg_wal', 'postgresql.conf', 'pg_hba.conf']) {
    if (!(await lstat(path.join(cluster, part)).catch(() => undefined))) {
      throw damaged(`The PostgreSQL database in ${cluster} is damaged: ${part} is missing.`, hint);
    }
  }
  // PostgreSQL refuses a directory that other users may read, and copied or restored directories often have such a
  // mode.
  if ((kind.mode & 0o077) !== 0) await chmod(cluster, 0o700);
}

function damaged(message: string, hint: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError('damaged', message, hint);
}
