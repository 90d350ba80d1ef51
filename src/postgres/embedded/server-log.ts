import { copyFile, open, stat, truncate } from 'node:fs/promises';
import type { Home } from './home.ts';
import { giveToOwnerOfDirectory } from './own-files.ts';

const MAX_LOG_BYTES = 10 * 1024 * 1024;
const CHECK_EVERY_MS = 10 * 60 * 1000;

/** Opens PostgreSQL's log. The server inherits the descriptor, so its user needs no access to the file. */
export async function openServerLog(
  home: Home,
): Promise<{ fd: number; size: number; close(): Promise<void> }> {
  await rotateServerLog(home);
  const handle = await open(home.log, 'a', 0o600);
  await giveToOwnerOfDirectory(home.log);
  const { size } = await handle.stat();
  return { fd: handle.fd, size, close: () => handle.close() };
}

/** Returns the log since `offset`, at most the last 64 kB. */
export async function readServerLog(home: Home, offset: number): Promise<string> {
  const handle = await open(home.log, 'r').catch(() => undefined);
  if (!handle) return '';
  try {
    const { size } = await handle.stat();
    const start = Math.max(offset, size - 64 * 1024);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(size - start, 0)), {
      position: start,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Copies and truncates a large log instead of renaming it: the server keeps the file open and appends to it. */
async function rotateServerLog(home: Home): Promise<void> {
  const now = await stat(home.log).catch(() => undefined);
  if (!now || now.size < MAX_LOG_BYTES) return;
  // Truncate even if the copy fails, for example on a full disk.
  await copyFile(home.log, `${home.log}.1`).catch(() => {});
  await truncate(home.log);
}

/** Keeps the log of a server that runs for months small. Returns a function that stops this. */
export function rotateServerLogRegularly(home: Home): () => void {
  const timer = setInterval(() => {
    rotateServerLog(home).catch(() => {}); // a log that cannot be truncated must not stop Posthorn
  }, CHECK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
