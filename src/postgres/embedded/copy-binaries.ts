import { randomBytes } from 'node:crypto';
import { chmod, cp, lstat, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { InstalledBinaries } from './binaries.ts';
import { flushToDisk, makeDirectory } from './own-files.ts';

/**
 * Copies the programs, once per version, below `systemDir`, where PostgreSQL's user can read and run them. The copy
 * belongs to root, so that no other user can change what root starts. Old versions stay: another Posthorn may be
 * running from them.
 */
export async function copyWhereReachable(
  installed: InstalledBinaries,
  systemDir: string,
  canRun: (native: string) => Promise<boolean>,
): Promise<{ native: string; isNew: boolean }> {
  const copiesDir = path.join(systemDir, 'binaries');
  const native = path.join(copiesDir, installed.label);
  if (await canRun(native)) return { native, isNew: false };

  await makeDirectory(copiesDir, 0o711);
  // Copy under another name and rename when complete, so that an interrupted copy is never run.
  const unfinished = `${native}.new-${randomBytes(6).toString('hex')}`;
  try {
    await cp(installed.native, unfinished, {
      recursive: true,
      verbatimSymlinks: true,
      filter: isNeededToRun,
    });
    await makeReadable(unfinished);
    await rm(native, { recursive: true, force: true });
    await rename(unfinished, native);
    await flushToDisk(copiesDir);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another process may have created the same copy between our check and our rename.
    if (!(await canRun(native))) throw error;
  }
  return { native, isNew: true };
}

/** Leaves out what only compilers need. */
function isNeededToRun(file: string): boolean {
  return !file.endsWith('.a') && path.basename(file) !== 'pkgconfig';
}

/** Makes all files readable: with umask 077, only root could read them. */
async function makeReadable(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  const entries = await readdir(directory, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const file = path.join(directory, entry.name);
      if (entry.isDirectory()) return makeReadable(file);
      if (!entry.isFile()) return;
      const { mode } = await lstat(file);
      await chmod(file, mode & 0o100 ? 0o755 : 0o644);
      await flushToDisk(file);
    }),
  );
}
