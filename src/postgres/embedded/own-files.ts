import { chmod, chown, mkdir, open, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isRoot } from './server-user.ts';

/** fsync of a file, or of a directory so that the names in it survive a power cut. */
export async function flushToDisk(file: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes a small file atomically and durably. Only the owner of its directory can read it. */
export async function writeDurably(file: string, content: string): Promise<void> {
  const unfinished = `${file}.new`;
  await writeFile(unfinished, content, { mode: 0o600, flush: true });
  await giveToOwnerOfDirectory(unfinished);
  await rename(unfinished, file);
  await flushToDisk(path.dirname(file));
}

/**
 * Root may run Posthorn once on an ordinary user's data directory: that user must still be able to use it afterwards.
 */
export async function giveToOwnerOfDirectory(file: string): Promise<void> {
  if (!isRoot()) return;
  const owner = await stat(path.dirname(file));
  if (owner.uid !== 0) await chown(file, owner.uid, owner.gid);
}

/**
 * Creates the directory and its missing parents with this mode, whatever the umask is. Existing ones keep their mode.
 */
export async function makeDirectory(directory: string, mode: number): Promise<void> {
  const firstCreated = await mkdir(directory, { recursive: true });
  if (!firstCreated) return;
  for (let dir = directory; dir.length >= firstCreated.length; dir = path.dirname(dir))
    await chmod(dir, mode);
}
