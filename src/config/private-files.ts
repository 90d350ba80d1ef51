/** Small files that only their owner can read. They are written atomically and durably. */
import { randomBytes } from 'node:crypto';
import { chmod, chown, link, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';

const OWNER_ONLY = 0o600;
const isRoot = (): boolean => process.getuid?.() === 0;

/** Makes the file private. Returns true if other users could read it before. */
export async function tightenMode(file: string): Promise<boolean> {
  if (process.platform === 'win32') return false;
  const { mode } = await stat(file);
  if ((mode & 0o077) === 0) return false;
  await chmod(file, OWNER_ONLY);
  return true;
}

/** Creates the file unless it exists. Returns true if this call created it. */
export async function writeOnce(file: string, content: string): Promise<boolean> {
  const unfinished = `${file}.${process.pid}-${randomBytes(4).toString('hex')}.new`;
  const handle = await open(unfinished, 'wx', OWNER_ONLY);
  try {
    await handle.writeFile(content);
    await handle.sync();
    await giveToOwnerOf(path.dirname(file), unfinished);
    return await moveIntoPlace(unfinished, file);
  } finally {
    await handle.close();
    await rm(unfinished, { force: true });
    await flushDirectory(path.dirname(file));
  }
}

async function moveIntoPlace(unfinished: string, file: string): Promise<boolean> {
  try {
    // Unlike rename, link does not replace a file: if two processes start at the same time, the first one's key stays.
    await link(unfinished, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    // The file system has no hard links.
    if (await exists(file)) return false;
    await rename(unfinished, file);
    return true;
  }
}

/**
 * Creates the directory, with the mode that the embedded server needs: if Posthorn runs as root, PostgreSQL's user must be
 * able to enter.
 */
export async function makePrivateDirectory(directory: string): Promise<void> {
  const firstCreated = await mkdir(directory, { recursive: true });
  if (firstCreated === undefined) return;
  // Set the mode explicitly, because it depends on the umask; but only of directories that this call created.
  const mode = isRoot() ? 0o711 : 0o700;
  for (let dir = directory; dir.length >= firstCreated.length; dir = path.dirname(dir))
    await chmod(dir, mode);
}

/** If root runs Posthorn on the data directory of another user, that user must be able to use the file afterwards. */
async function giveToOwnerOf(directory: string, file: string): Promise<void> {
  if (!isRoot()) return;
  const owner = await stat(directory);
  if (owner.uid !== 0) await chown(file, owner.uid, owner.gid);
}

async function flushDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function exists(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch {
    return false;
  }
}
