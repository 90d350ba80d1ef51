import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * Creates a temporary directory that other users can enter. PostgreSQL does not run as root: without access, the embedded
 * server would keep its files elsewhere, and they would stay after the directory is removed.
 */
export async function openDirectory(name: string, parent = tmpdir()): Promise<string> {
  const directory = await mkdtemp(path.join(parent, name));
  await chmod(directory, 0o755);
  return directory;
}
