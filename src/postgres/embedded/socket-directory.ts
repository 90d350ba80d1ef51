import { chmod, chown, lstat, mkdir, mkdtemp, readlink, rm, symlink, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Home } from './home.ts';
import type { RunAs } from './run-command.ts';

const SOCKET = '.s.PGSQL.5432';

/** What fits into the kernel's sockaddr_un: 107 bytes on Linux, 103 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103;
const SHORT_PREFIX = '/tmp/posthorn-';

/**
 * A Unix socket in a directory that only the server's user (and root) can enter, rather than a TCP port: no other user
 * of the machine gets as far as the password prompt, there is no port to find or to lose, and it is quicker.
 * Where the data directory's path is too long for one, the socket goes to a fresh directory in /tmp, with a link in its
 * usual place.
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

/** Only when no server is using it: what a killed one has left would stop the next from starting. */
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

/** The socket and its lock file of a server that was killed: the process id in it may by now be somebody else's. */
export async function clearSocket(directory: string): Promise<void> {
  await rm(path.join(directory, SOCKET), { force: true });
  await rm(path.join(directory, `${SOCKET}.lock`), { force: true });
}
