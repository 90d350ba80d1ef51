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

/** Referenced from here for as long as they are held: a collected database object would close, and drop its lock. */
const held = new Set<DatabaseSync>();

/**
 * One Posthorn per data directory, by a lock that the kernel holds for the process: two starters cannot both have it, and
 * it is gone the moment the process is, however it ended. A file with a process id has neither property by itself (ids
 * are reused, mean nothing in another container, and clearing a stale file is a race). Node has no file locks of its own;
 * the SQLite inside it has: an exclusive transaction on an empty database, in which nothing is ever written. The empty
 * file stays when the lock is released, since deleting a lock file is a race as well.
 */
export async function takePosthornLock(home: Home): Promise<PosthornLock> {
  const database = lockFile(home) ?? (await refuse(home));
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
      await rm(home.holder, { force: true }).catch(() => {}); // before letting go: later it would be the next one's
      database.close();
    },
  };
}

/** The lock, or undefined when another has it. */
function lockFile(home: Home): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(home.lock, { timeout: 0 });
    // Its journal in memory: so nothing is written, and the lock can be had on a full disk as well.
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

async function refuse(home: Home): Promise<never> {
  // Missing only in the instant between taking the lock and writing the file.
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
