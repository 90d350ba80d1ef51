import { chmod, lstat, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError } from './errors.ts';
import { exists, type Home } from './home.ts';
import { clearUnfinished, findUnfinished } from './unfinished-cluster.ts';

const BEGIN_ANEW = 'to begin with an empty database, move the directory away';

/**
 * Is there a database? The answer "no" makes a new one, so it is given only when nothing is there: no cluster, and no
 * password that shows there was one. Everything in between is an error, never an empty database in silence.
 *
 *   cluster   password   unfinished   →
 *   no        –          yes             a first start was cut short: clear it away, begin again
 *   no        no         no              new
 *   no        yes        no              damaged: there was one (a disk that is not mounted?)
 *   yes       no         –               damaged: nobody can log in
 *   yes       yes        –               use it, after a look at what every cluster has
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
      `Bring it back from a backup; ${BEGIN_ANEW}.`,
    );
  }
  return 'present';
}

async function checkCluster(cluster: string, major: string): Promise<void> {
  const kind = await stat(cluster).catch(() => undefined);
  if (!kind?.isDirectory()) {
    throw damaged(
      `${cluster} is not a directory.`,
      `It has to be a PostgreSQL data directory; ${BEGIN_ANEW}.`,
    );
  }
  const hint = `Posthorn does not touch it. Restore it from a backup; ${BEGIN_ANEW}.`;
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
  // PostgreSQL refuses a directory that others may read; copies and restores often make it one.
  if ((kind.mode & 0o077) !== 0) await chmod(cluster, 0o700);
}

function damaged(message: string, hint: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError('damaged', message, hint);
}
