/** An archive in a directory. */
import { randomUUID } from 'node:crypto';
import {
  access,
  constants,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { ArchiveError, ArchiveFullError, isDiskFull } from '../../domain/archive.ts';
import type { ArchiveTarget } from './target.ts';

/** Unfinished files. They are in the archive itself, because a file can be renamed only within one file system. */
const SPOOL = '.unfinished';

export class FileTarget implements ArchiveTarget {
  readonly url: string;
  readonly #root: string;
  /** Device and inode of the directory at its first use. Null: it was not used yet. */
  #identity: string | null = null;

  constructor(url: string, root: string) {
    this.url = url;
    this.#root = root;
  }

  async check(): Promise<void> {
    await this.#checkRoot();
    await this.#try('write to', () => access(this.#root, constants.R_OK | constants.W_OK));
  }

  async spoolPath(): Promise<string> {
    await this.#checkRoot();
    return this.#try('write to', async () => {
      const folder = path.join(this.#root, SPOOL);
      await mkdir(folder, { recursive: true });
      // A leftover file belongs to a process that was killed: only one process at a time writes.
      for (const name of await readdir(folder)) await unlink(path.join(folder, name));
      return path.join(folder, randomUUID());
    });
  }

  async put(name: string, file: string): Promise<void> {
    await this.#checkRoot();
    await this.#try('write to', async () => {
      const target = path.join(this.#root, name);
      const folder = path.dirname(target);
      const firstMade = await mkdir(folder, { recursive: true });
      await rename(file, target);
      for (const changed of changedFolders(folder, firstMade)) await syncFolder(changed);
    });
  }

  async putText(name: string, text: string): Promise<void> {
    const file = await this.spoolPath();
    await this.#try('write to', () => writeFile(file, text, { mode: 0o600, flush: true }));
    await this.put(name, file);
  }

  async readText(name: string): Promise<string | null> {
    await this.#checkRoot();
    try {
      return await readFile(path.join(this.#root, name), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw describe('read', this.#root, error);
    }
  }

  async sizeOf(name: string): Promise<number | null> {
    await this.#checkRoot();
    try {
      return (await stat(path.join(this.#root, name))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw describe('read', this.#root, error);
    }
  }

  async withFile<T>(name: string, read: (file: string) => Promise<T>): Promise<T> {
    await this.#checkRoot();
    const file = path.join(this.#root, name);
    await this.#try('read', () => stat(file));
    return read(file);
  }

  async list(prefix: string): Promise<string[]> {
    await this.#checkRoot();
    const folder = path.join(this.#root, prefix);
    try {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) =>
          path.relative(this.#root, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'),
        )
        .filter((name) => !name.startsWith(`${SPOOL}/`))
        .sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw describe('read', this.#root, error);
    }
  }

  async remove(name: string): Promise<void> {
    await this.#checkRoot();
    await this.#try('write to', () => rm(path.join(this.#root, name), { force: true }));
  }

  /**
   * Throws an error if the directory is missing, and does not create it: without its mount, the archive would be written to the disk
   * below. Also throws if the directory is not the one of the first use: after an unmount, the empty mount point has its name.
   */
  async #checkRoot(): Promise<void> {
    const found = await stat(this.#root, { bigint: true }).catch(() => null);
    if (found === null || !found.isDirectory())
      throw new ArchiveError(
        `The directory ${this.#root} of POSTHORN_ARCHIVE_URL does not exist. Create it, or mount it.`,
      );
    const identity = `${found.dev}:${found.ino}`;
    this.#identity ??= identity;
    if (identity !== this.#identity)
      throw new ArchiveError(
        `The directory ${this.#root} of POSTHORN_ARCHIVE_URL is not the directory that it was when this run began. Mount it again.`,
      );
  }

  async #try<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw describe(what, this.#root, error);
    }
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  ENOENT: 'a file or directory is missing',
};

function describe(what: string, root: string, error: unknown): Error {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const Kind = isDiskFull(error) ? ArchiveFullError : ArchiveError;
  return new Kind(`Posthorn cannot ${what} the archive ${root}: ${REASONS[code] ?? message}.`, {
    cause: error,
  });
}

/**
 * The directories that have a new entry after a file was put into `folder`. `firstMade` is the outermost directory that was created
 * for it. A partition is dropped soon after, so a power failure must not lose the entry of a new directory either.
 */
export function changedFolders(folder: string, firstMade: string | undefined): string[] {
  const changed = [folder];
  if (firstMade === undefined) return changed;
  for (let made = folder; made.length >= firstMade.length; made = path.dirname(made))
    changed.push(path.dirname(made));
  return changed;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
