import { chmod, chown, lstat, mkdir, mkdtemp, readlink, rm, symlink, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Home } from './home.ts';
import type { RunAs } from './run-command.ts';

const SOCKET = '.s.PGSQL.5432';

/** The limit of the kernel's sockaddr_un: 107 bytes on Linux, 103 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103;
const SHORT_PREFIX = '/tmp/posthorn-';

/**
 * Creates a directory for the Unix socket that only the server's user (and root) can enter. A socket is better than a
 * TCP port: other users of the machine cannot even try a password, no port has to be free, and it is quicker. If the
 * path of the data directory is too long for a socket, the directory is in /tmp, with a link in its usual place.
 */
export async function prepareSocketDirectory(home: Home, runAs: RunAs): Promise<string> {
  await removeSocketDirectory(home);
  let directory = home.socket;
  if (Buffer.byteLength(path.join(directory, SOCKET)) > MAX_SOCKET_PATH_BYTES) {
    directory = await mkdtemp(SHORT_PREFIX);
    await symlink(directory, home.socket);
  } else {
    await mkdir(directory);
  }
  await chmod(directory, 0o700);
  if (runAs) await chown(directory, runAs.uid, runAs.gid);
  return directory;
}

/**
 * Removes what a killed server has left, which would stop the next one from starting. Call it only if no server uses
 * the directory.
 */
export async function removeSocketDirectory(home: Home): Promise<void> {
  const now = await lstat(home.socket).catch(() => undefined);
  if (now?.isSymbolicLink()) {
    const target = await readlink(home.socket);
    if (target.startsWith(SHORT_PREFIX)) await rm(target, { recursive: true, force: true });
    await unlink(home.socket);
  } else if (now) {
    await rm(home.socket, { recursive: true, force: true });
  }
}

/**
 * Removes the socket and the lock file of a killed server. The process id in the lock file may belong to another
 * program now.
 */
export async function clearSocket(directory: string): Promise<void> {
  await rm(path.join(directory, SOCKET), { force: true });
  await rm(path.join(directory, `${SOCKET}.lock`), { force: true });
}
