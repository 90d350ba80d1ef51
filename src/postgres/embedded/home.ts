import { createHash } from 'node:crypto';
import { lstat, realpath, symlink } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, errorCode, OWN_SERVER_HINT } from './errors.ts';
import { makeDirectory } from './own-files.ts';
import { canEnter, ensureServerUser, isRoot } from './server-user.ts';

/** The files of one embedded server. */
export interface Home {
  /** The real directory that holds all of the following. */
  readonly dir: string;
  /** PostgreSQL's own data directory ("cluster"). */
  readonly cluster: string;
  readonly password: string;
  readonly log: string;
  /** Held by the Posthorn process that uses this directory; see posthorn-lock.ts. */
  readonly lock: string;
  /** Names the process that holds the lock, for the error message of other processes. */
  readonly holder: string;
  /** The directory of PostgreSQL's Unix socket, or a link to it. */
  readonly socket: string;
}

/** The directory of a new cluster has this prefix until the cluster is complete. */
export const UNFINISHED_PREFIX = 'postgres.new-';

/**
 * Returns the home, normally the data directory itself. If root runs Posthorn, PostgreSQL's user may be unable to enter
 * that directory (for example in a checkout below /root). Posthorn does not change the modes of existing directories:
 * it puts the files into /var/lib/posthorn/<hash of the path>, and a symbolic link "relocated" to them into the data
 * directory. The link works even if the data directory moves.
 */
export async function findHome(
  dataDir: string,
  systemDir: string,
  log: (line: string) => void,
): Promise<Home> {
  // Only the owner may read it. If the owner is root, PostgreSQL's user may pass through.
  await makeDirectory(path.resolve(dataDir), isRoot() ? 0o711 : 0o700);
  const real = await realpath(dataDir);
  const link = path.join(real, 'relocated');
  if (await exists(link)) return homeIn(await followLink(link));
  const home = homeIn(real);
  // A password without a cluster means that a database was lost: report that, do not create another one elsewhere.
  if (!isRoot() || (await exists(home.cluster)) || (await exists(home.password))) return home;
  const user = await ensureServerUser();
  if (await canEnter(user, real)) return home;

  // The path determines the directory, so the database is found again if the link is missing (after a kill or in a
  // fresh checkout).
  const dir = path.join(systemDir, createHash('sha256').update(real).digest('hex').slice(0, 16));
  await makeDirectory(dir, 0o711);
  if (!(await canEnter(user, dir))) {
    throw new EmbeddedPostgresError(
      'no_permission',
      `The user who runs PostgreSQL (uid ${user.uid}) can enter neither ${real} nor ${dir}.`,
      `Name a data directory that this user can reach. ${OWN_SERVER_HINT}`,
    );
  }
  await symlink(dir, link).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  log(`PostgreSQL's user cannot enter ${real}; the database is in ${dir} (link: ${link})`);
  return homeIn(await realpath(dir));
}

function homeIn(dir: string): Home {
  const file = (name: string) => path.join(dir, name);
  return {
    dir,
    cluster: file('postgres'),
    password: file('postgres.password'),
    log: file('postgres.log'),
    lock: file('posthorn.lock'),
    holder: file('posthorn.holder.json'),
    socket: file('socket'),
  };
}

async function followLink(link: string): Promise<string> {
  return realpath(link).catch((error: unknown) => {
    throw new EmbeddedPostgresError(
      'damaged',
      `The directory of this database, to which ${link} points, does not exist.`,
      'Bring that directory back (is a disk not mounted?); or delete the link to begin with an empty database.',
      { cause: error },
    );
  });
}

export async function exists(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}
