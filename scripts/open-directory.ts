import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * A new directory that PostgreSQL's user may enter too. Where it may not, the embedded server keeps its files elsewhere,
 * and they would stay there when the directory is removed.
 */
export async function openDirectory(name: string, below = tmpdir()): Promise<string> {
  const directory = await mkdtemp(path.join(below, name));
  await chmod(directory, 0o755);
  return directory;
}
