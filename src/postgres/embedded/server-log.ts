import { copyFile, open, stat, truncate } from 'node:fs/promises';
import type { Home } from './home.ts';
import { giveToOwnerOfDirectory } from './own-files.ts';

const MAX_LOG_BYTES = 10 * 1024 * 1024;
const LOOK_EVERY_MS = 10 * 60 * 1000;

/** PostgreSQL's log: a file we open and it writes to, so that it works wherever the file lies and whoever runs the server. */
export async function openServerLog(
  home: Home,
): Promise<{ fd: number; size: number; close(): Promise<void> }> {
  await boundServerLog(home);
  const handle = await open(home.log, 'a', 0o600);
  await giveToOwnerOfDirectory(home.log);
  const { size } = await handle.stat();
  return { fd: handle.fd, size, close: () => handle.close() };
}

/** What it has said since `offset`; at most the last 64 kB. */
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

/** Copied and emptied instead of renamed: the server has the file open, and appends, so it goes on at the new end. */
async function boundServerLog(home: Home): Promise<void> {
  const now = await stat(home.log).catch(() => undefined);
  if (!now || now.size < MAX_LOG_BYTES) return;
  // No room for the copy is no reason to keep the original growing.
  await copyFile(home.log, `${home.log}.1`).catch(() => {});
  await truncate(home.log);
}

/** The log of a server that runs for months stays bounded too. */
export function keepServerLogBounded(home: Home): () => void {
  const timer = setInterval(() => {
    boundServerLog(home).catch(() => {}); // a log that cannot be shortened must not take the platform down
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
