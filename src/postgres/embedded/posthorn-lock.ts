import { chmod, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { EmbeddedPostgresError, OWN_SERVER_HINT } from './errors.ts';
import type { Home } from './home.ts';
import { giveToOwnerOfDirectory, writeDurably } from './own-files.ts';

export interface PosthornLock {
  release(): Promise<void>;
}

const SQLITE_BUSY = 5;

/** Keeps a reference to each held lock: a garbage-collected database object would close and release it. */
const held = new Set<DatabaseSync>();

/**
 * Makes sure that only one Posthorn uses a data directory, by a file lock: two processes cannot both hold it, and the
 * kernel releases it when the process ends, however it ends. A file with a process id has neither property (ids are
 * reused, mean nothing in another container, and deleting a stale file is a race). Node has no file locks of its own,
 * but its SQLite does: the lock is an exclusive transaction on an empty database, which writes nothing. The empty file
 * stays, because deleting a lock file is a race as well. Throws if another process holds the lock.
 */
export async function takePosthornLock(home: Home): Promise<PosthornLock> {
  const database = tryLockFile(home) ?? (await throwHeld(home));
  try {
    // Never open the lock file in another way: closing any descriptor of it drops the process's lock (POSIX).
    await chmod(home.lock, 0o600);
    await giveToOwnerOfDirectory(home.lock);
    const holder: Holder = { pid: process.pid, since: new Date().toISOString(), host: hostname() };
    await writeDurably(home.holder, JSON.stringify(holder));
  } catch (error) {
    database.close();
    throw error;
  }
  held.add(database);
  return {
    async release() {
      if (!held.delete(database)) return;
      await rm(home.holder, { force: true }).catch(() => {}); // before the release: afterwards it may be the file of the next holder
      database.close();
    },
  };
}

/** Returns the lock, or undefined if another process holds it. */
function tryLockFile(home: Home): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(home.lock, { timeout: 0 });
    // With the journal in memory nothing is written, so the lock works on a full disk as well.
    database.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; begin exclusive');
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw new EmbeddedPostgresError(
      'no_permission',
      `The lock file ${home.lock} cannot be used (${error instanceof Error ? error.message : error}).`,
      `Start Posthorn as the user who owns ${home.dir}, on a file system with file locks. ${OWN_SERVER_HINT}`,
      { cause: error },
    );
  }
}

interface Holder {
  pid: number;
  since: string;
  host: string;
}

async function throwHeld(home: Home): Promise<never> {
  // The file is missing only between taking the lock and writing the file.
  const text = await readFile(home.holder, 'utf8').catch(() => undefined);
  const holder = text ? (JSON.parse(text) as Holder) : undefined;
  const isSelf = holder?.pid === process.pid && holder.host === hostname();
  const who = !holder
    ? 'another Posthorn, which is just starting'
    : isSelf
      ? `this same process, since ${holder.since}`
      : `another Posthorn: process ${holder.pid} on ${holder.host}, since ${holder.since}`;
  const stopIt = holder && !isSelf ? `stop it first (kill ${holder.pid})` : 'stop it first';
  throw new EmbeddedPostgresError(
    'held',
    `The data directory ${home.dir} is in use by ${who}.`,
    `To use it here, ${stopIt}; or name another data directory. To run several processes on one database, start one Posthorn with --processes, or give all the same DATABASE_URL.`,
  );
}
