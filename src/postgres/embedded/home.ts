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
  /** Who holds it, for the message to the one who wanted it too. */
  readonly holder: string;
  /** The directory of PostgreSQL's Unix socket, or a link to it. */
  readonly socket: string;
}

/** A cluster is made below this name and renamed into place when it is complete. */
export const UNFINISHED_PREFIX = 'postgres.new-';

/**
 * Normally the data directory itself. As root it can be one that PostgreSQL's user cannot enter (a checkout below /root,
 * say). We do not loosen anybody's directories: the files then go to /var/lib/posthorn/<hash of the path>, with a
 * symbolic link "relocated" in the data directory, by which they are found again even if the data directory moves.
 */
export async function findHome(
  dataDir: string,
  systemDir: string,
  log: (line: string) => void,
): Promise<Home> {
  // For the owner alone; as root with the right to pass through for PostgreSQL's user.
  await makeDirectory(path.resolve(dataDir), isRoot() ? 0o711 : 0o700);
  const real = await realpath(dataDir);
  const link = path.join(real, 'relocated');
  if (await exists(link)) return homeIn(await follow(link));
  const home = homeIn(real);
  // Also if only the password is left: that is a lost database, to be reported and not to be replaced elsewhere.
  if (!isRoot() || (await exists(home.cluster)) || (await exists(home.password))) return home;
  const user = await ensureServerUser();
  if (await canEnter(user, real)) return home;

  // The same path gives the same place: a link lost to a kill, or to a fresh checkout, leads to the same database again.
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

async function follow(link: string): Promise<string> {
  return realpath(link).catch((error: unknown) => {
    throw new EmbeddedPostgresError(
      'damaged',
      `${link} leads to the place of this database, and nothing is there.`,
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
