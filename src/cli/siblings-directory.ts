/**
 * The directory of the sockets between the child processes of one node. The supervisor creates and removes it; if the
 * supervisor was killed, its children remove it, and if all were killed at once, the next supervisor does.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Log } from '../telemetry/log.ts';

const PREFIX = 'posthorn-siblings-';
/** A younger directory may belong to a node that is starting and has no sockets yet. */
const LEFTOVER_AFTER_MS = 60_000;

/**
 * Only its owner may enter, because children trust the messages of these sockets. Returns null if the
 * directory cannot be created: the children then work without sockets.
 */
export async function makeSiblingsDirectory(log: Log, parent = tmpdir()): Promise<string | null> {
  await removeLeftovers(parent).catch((error) => log.debug({ err: error }, 'cannot remove leftover sockets'));
  try {
    return await mkdtemp(path.join(parent, PREFIX));
  } catch (error) {
    log.warn(
      { err: error },
      'cannot create the directory for sockets between child processes: they notify each other through the database',
    );
    return null;
  }
}

export const removeSiblingsDirectory = (directory: string): void =>
  rmSync(directory, { recursive: true, force: true });

/** Removes directories of this user in which no socket answers: their node was killed. */
async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const directory = path.join(parent, name);
    const { uid, mtimeMs } = await stat(directory);
    if (uid !== process.getuid?.() || Date.now() - mtimeMs < LEFTOVER_AFTER_MS) continue;
    const sockets = (await readdir(directory)).map((socket) => path.join(directory, socket));
    const answers = await Promise.all(sockets.map(isListening));
    if (!answers.includes(true)) await rm(directory, { recursive: true, force: true });
  }
}

function isListening(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once('connect', () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', () => resolve(false));
  });
}
